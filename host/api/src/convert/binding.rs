//! Imports and exports.

use orangery_blueprint::binding::{self, KeyReference};

use crate::{
    installation::{DataExport, DataImport, Exports, Imports, TargetExport, TargetImport},
    reference::{LocalConfigMapReference, LocalSecretReference},
};

impl From<&Imports> for binding::ImportBindings {
    fn from(imports: &Imports) -> Self {
        let data = imports.data.iter().map(|import| binding::DataImport {
            name: import.name.clone(),
            data_ref: import.data_ref.clone(),
            secret_ref: import.secret_ref.as_ref().map(|reference| key(&reference.name, &reference.key)),
            config_map_ref: import.config_map_ref.as_ref().map(|reference| key(&reference.name, &reference.key)),
        });
        let targets = imports.targets.iter().map(|import| binding::TargetImport {
            name: import.name.clone(),
            target: import.target.clone(),
            targets: import.targets.clone(),
            target_list_ref: import.target_list_ref.clone(),
            target_map: import.target_map.clone(),
            target_map_ref: import.target_map_ref.clone(),
        });
        Self { data: data.collect(), targets: targets.collect() }
    }
}

fn key(name: &str, key: &str) -> KeyReference {
    KeyReference { name: name.to_owned(), key: key.to_owned() }
}

impl From<binding::ImportBindings> for Imports {
    fn from(imports: binding::ImportBindings) -> Self {
        let data = imports.data.into_iter().map(|import| DataImport {
            name: import.name,
            data_ref: import.data_ref,
            secret_ref: import
                .secret_ref
                .map(|reference| LocalSecretReference { name: reference.name, key: reference.key }),
            config_map_ref: import
                .config_map_ref
                .map(|reference| LocalConfigMapReference { name: reference.name, key: reference.key }),
            version: String::new(),
        });
        let targets = imports.targets.into_iter().map(|import| TargetImport {
            name: import.name,
            target: import.target,
            targets: import.targets,
            target_list_ref: import.target_list_ref,
            target_map: import.target_map,
            target_map_ref: import.target_map_ref,
        });
        Self { data: data.collect(), targets: targets.collect() }
    }
}

impl From<&Exports> for binding::ExportBindings {
    fn from(exports: &Exports) -> Self {
        let data = exports.data.iter();
        let data =
            data.map(|export| binding::DataExport { name: export.name.clone(), data_ref: export.data_ref.clone() });
        let targets = exports.targets.iter();
        let targets =
            targets.map(|export| binding::TargetExport { name: export.name.clone(), target: export.target.clone() });
        Self { data: data.collect(), targets: targets.collect() }
    }
}

impl From<binding::ExportBindings> for Exports {
    fn from(exports: binding::ExportBindings) -> Self {
        let data = exports.data.into_iter().map(|export| DataExport { name: export.name, data_ref: export.data_ref });
        let targets =
            exports.targets.into_iter().map(|export| TargetExport { name: export.name, target: export.target });
        Self { data: data.collect(), targets: targets.collect() }
    }
}
