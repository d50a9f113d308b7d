//! What goes on with exports that come in the job, and what does not (C-369).

use orangery_api::installation::InstallationSpec;
use orangery_blueprint::{ExportDefinition, binding::ExportBindings, export, record::RecordWriter};
use serde_json::{Map, Value};

use super::{Offline, OfflineError, OfflineFault};

impl Offline<'_> {
    /// Why an installation is not rendered with values that stand for the exports of those before it.
    pub(super) fn undecided(&self, before: &[String], error: &OfflineError) -> String {
        let waits_for = format!("the exports of {}, which come in the job", before.join(", "));
        match (error.why.as_ref(), &self.opaque) {
            // Nothing stands for what it imports.
            (OfflineFault::Imports(_), _) | (_, None) => waits_for,
            (why, Some(opaque)) => {
                format!("{waits_for}; with nothing but what stands for them: {}", opaque.display(&why.to_string()))
            }
        }
    }

    /// Values that stand for exports which are not known, where there are any; `None` where nothing stands for any of them.
    pub(super) fn opaque_exports(
        &mut self,
        exports: &[ExportDefinition],
        spec: &InstallationSpec,
        (path, scope): (&str, &RecordWriter<'_>),
    ) -> Result<Option<Map<String, Value>>, OfflineFault> {
        let Some(opaque) = self.opaque.as_mut().filter(|_| spec.export_data_mappings.is_empty()) else {
            return Ok(None);
        };
        let values = exports.iter().filter_map(|export| Some((export.name.clone(), opaque.of(path, export)?)));
        let values: Map<String, Value> = values.collect();
        if values.is_empty() {
            return Ok(None);
        }
        let mut bindings = ExportBindings::from(&spec.exports);
        bindings.data.retain(|export| values.contains_key(&export.name));
        bindings.targets.clear();
        let records = export::records(&bindings, &values, scope)?;
        self.export(&records, scope)?;
        Ok(Some(values))
    }
}
