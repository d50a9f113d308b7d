//! What a blueprint's templates become: the spec of a sub-installation, a deploy item as its Execution lists it
//! (`docs/wire.md` §4.1, §5.8).

use orangery_blueprint::{InstallationTemplate, ItemTemplate, TemplateBlueprint, gate::GateExpressions};
use orangery_core::{digest::sha256, name::Namespace, plan::renamed::Origin};
use orangery_ocm::Child;
use serde_json::json;

use crate::{
    deploy_item::OnDelete,
    duration::Duration,
    execution::DeployItemTemplate,
    installation::{
        BlueprintReference, BlueprintSource, Exports, ImportPolicy, Imports, InlineBlueprint, InstallationSpec,
        Optimization, ReconcilePolicy,
    },
    reference::ObjectReference,
};

/// The spec of a sub-installation. `child` is what the component version of the parent makes of its `blueprint.ref`.
pub fn subinstallation(
    parent: &InstallationSpec,
    template: &InstallationTemplate,
    child: Option<&Child>,
) -> InstallationSpec {
    let (component_descriptor, blueprint) = match (&template.blueprint, child) {
        (_, Some(child)) => {
            let reference = BlueprintReference { resource_name: child.resource.clone() };
            (Some((&child.component).into()), BlueprintSource { reference: Some(reference), inline: None })
        }
        (TemplateBlueprint::Inline(filesystem), None) => {
            let inline = InlineBlueprint { filesystem: filesystem.clone() };
            (parent.component_descriptor.clone(), BlueprintSource { reference: None, inline: Some(inline) })
        }
        // The rendering found no child for it: it says so itself.
        (TemplateBlueprint::Reference(_), None) => (parent.component_descriptor.clone(), BlueprintSource::default()),
    };
    InstallationSpec {
        context: parent.context.clone(),
        component_descriptor,
        blueprint,
        imports: template.imports.clone().into(),
        import_data_mappings: template.import_data_mappings.clone(),
        exports: template.exports.clone().into(),
        export_data_mappings: template.export_data_mappings.clone(),
        optimization: template.optimization.map(|promise| Optimization {
            has_no_sibling_imports: promise.has_no_sibling_imports,
            has_no_sibling_exports: promise.has_no_sibling_exports,
        }),
        // What the parent's user asked for holds for the whole tree (`docs/wire.md` §16).
        verification: parent.verification.clone(),
        // Jobs begin at roots.
        automatic_reconcile: None,
        reconcile_policy: ReconcilePolicy::Manual,
        import_policy: ImportPolicy::Fail,
        failure_policy: parent.failure_policy,
        max_parallel: parent.max_parallel,
        approval: parent.approval,
    }
}

/// What a sub-installation is made from. The version of its component does not count: it changes with that of its parent.
pub fn origin(spec: &InstallationSpec) -> Origin {
    let component = spec.component_descriptor.as_ref().and_then(|source| source.reference.as_ref());
    let component = component.map_or("", |reference| reference.component_name.as_str());
    let blueprint =
        spec.blueprint.reference.as_ref().map(|blueprint| format!("{component} {}", blueprint.resource_name));
    let is_bound = spec.imports != Imports::default() || spec.exports != Exports::default();
    let bound = json!({
        "imports": spec.imports,
        "importDataMappings": spec.import_data_mappings,
        "exports": spec.exports,
        "exportDataMappings": spec.export_data_mappings,
    });
    // Digests, as there is one of these for each of many sub-installations, and a spec may be long.
    let digest = |text: String| sha256(text.as_bytes());
    let whole = digest(json!({"blueprint": blueprint, "inline": spec.blueprint.inline, "bound": bound}).to_string());
    let kept = blueprint.or_else(|| is_bound.then(|| digest(bound.to_string())));
    Origin { kept, whole }
}

/// A deploy item as its Execution lists it; `target` is the Target object that it deploys to, `conditions` are its own with
/// their Target objects.
pub fn deploy_item(
    template: &ItemTemplate,
    target: Option<&str>,
    gates: &GateExpressions,
    namespace: &Namespace,
) -> DeployItemTemplate {
    let item = DeployItemTemplate {
        name: template.name.clone(),
        type_: template.type_.clone(),
        target: target.map(|name| ObjectReference { name: name.into(), namespace: namespace.to_owned() }),
        labels: template.labels.clone(),
        config: Some(template.config.clone()),
        depends_on: template.depends_on.clone(),
        timeout: template.timeout.clone().map(Duration),
        update_on_change_only: template.update_on_change_only,
        on_delete: on_delete(template),
        drift: template.drift.clone(),
        ..DeployItemTemplate::default()
    };
    item.with_gates(gates)
}

fn on_delete(template: &ItemTemplate) -> Option<OnDelete> {
    let (skip_uninstall_if_cluster_removed, keep) = (template.skip_uninstall_if_cluster_removed, template.keep);
    (skip_uninstall_if_cluster_removed || keep).then_some(OnDelete { skip_uninstall_if_cluster_removed, keep })
}

#[cfg(test)]
mod tests {
    use orangery_ocm::{ComponentSource, VersionReference};
    use serde_json::{Value, json};

    use super::*;

    fn parent() -> InstallationSpec {
        serde_json::from_value(json!({
            "context": "private",
            "verification": {"signatureName": "ours"},
            "componentDescriptor": {"ref": {"componentName": "example.org/a", "version": "1.0.0"}},
            "blueprint": {"ref": {"resourceName": "blueprint"}},
            "automaticReconcile": {"succeededReconcile": {}},
            "failurePolicy": "ContinueIndependent",
            "maxParallel": 2,
        }))
        .unwrap()
    }

    fn spec(blueprint: TemplateBlueprint, child: Option<&Child>) -> Value {
        let template = InstallationTemplate { name: "sub".to_owned(), blueprint, ..InstallationTemplate::default() };
        serde_json::to_value(subinstallation(&parent(), &template, child)).unwrap()
    }

    #[test]
    fn a_sub_installation_has_what_its_parent_asks_of_the_whole_tree_and_a_blueprint_of_its_own() {
        let expected = |component: Value, blueprint: Value| {
            json!({
                "context": "private", "verification": {"signatureName": "ours"},
                "failurePolicy": "ContinueIndependent", "maxParallel": 2,
                "componentDescriptor": component, "blueprint": blueprint,
            })
        };
        let own = json!({"ref": {"componentName": "example.org/a", "version": "1.0.0"}});
        let inline = spec(TemplateBlueprint::Inline(json!({"blueprint.yaml": ""})), None);
        assert_eq!(inline, expected(own.clone(), json!({"inline": {"filesystem": {"blueprint.yaml": ""}}})));
        let (name, version) = ("example.org/b".to_owned(), "2.0.0".to_owned());
        let component = ComponentSource::Reference(VersionReference { repository_context: None, name, version });
        let child = Child { component, resource: "other".to_owned() };
        let reference = || TemplateBlueprint::Reference("cd://componentReferences/b/resources/other".to_owned());
        let other = json!({"ref": {"componentName": "example.org/b", "version": "2.0.0"}});
        assert_eq!(spec(reference(), Some(&child)), expected(other, json!({"ref": {"resourceName": "other"}})));
        assert_eq!(spec(reference(), None), expected(own, json!({})));
    }

    #[test]
    fn c_168_a_sub_installation_is_known_by_its_blueprint_and_what_is_bound_to_it() {
        let of = |spec: Value| origin(&serde_json::from_value(spec).unwrap());
        let spec = |version: &str, resource: &str, import: &str| {
            json!({
                "componentDescriptor": {"ref": {"componentName": "example.org/a", "version": version}},
                "blueprint": {"ref": {"resourceName": resource}},
                "imports": {"data": [{"name": "x", "dataRef": import}]},
            })
        };
        let first = of(spec("1.0.0", "app", "y"));
        assert_eq!(first.kept.as_deref(), Some("example.org/a app"));
        assert_eq!(first, of(spec("2.0.0", "app", "y")));
        assert_ne!(first.whole, of(spec("1.0.0", "app", "z")).whole);
        assert_ne!(first.whole, of(spec("1.0.0", "other", "y")).whole);
        let inline = |text: &str| of(json!({"blueprint": {"inline": {"filesystem": {"blueprint.yaml": text}}}}));
        assert_eq!(inline("a").kept, None);
        let bound = |text: &str, import: &str| {
            let imports = json!({"data": [{"name": "x", "dataRef": import}]});
            of(json!({"blueprint": {"inline": {"filesystem": {"blueprint.yaml": text}}}, "imports": imports}))
        };
        assert!(bound("a", "y").kept.is_some() && bound("a", "y").kept == bound("b", "y").kept);
        assert_ne!(bound("a", "y").kept, bound("a", "z").kept);
        assert_ne!(inline("a").whole, inline("b").whole);
    }
}
