//! An execution of one's own: how many crates the harvest of each tree fills, as a ConfigMap.

use orangery_sdk::{Engine, InputStep, RenderFailure, RenderRequest, Rendered, TemplateHost};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What fits into a crate.
const KILOGRAMS: u64 = 12;

#[derive(Deserialize)]
struct Inputs {
    imports: Imports,
}

#[derive(Deserialize)]
struct Imports {
    trees: Vec<Tree>,
}

#[derive(Deserialize)]
struct Tree {
    name: String,
    kilograms: u64,
}

/// The execution.
pub struct Harvest;

impl Engine for Harvest {
    fn render(request: RenderRequest, host: impl TemplateHost) -> Result<Rendered, RenderFailure> {
        // The host shows what is there, by its type and never by its value.
        let trees = || vec![InputStep::field("imports"), InputStep::field("trees")];
        let Inputs { imports } = request.inputs().map_err(|failure: RenderFailure| failure.reading([trees()]))?;
        let season = host.read("season.txt").map_err(RenderFailure::new)?;
        let mut data = Map::new();
        data.insert("season".to_owned(), String::from_utf8_lossy(&season).trim().into());
        for tree in imports.trees {
            data.insert(tree.name, format!("{} crates", tree.kilograms.div_ceil(KILOGRAMS)).into());
        }
        Ok(Rendered::document(&json!({ "deployItems": [item(data)] })))
    }
}

fn item(data: Map<String, Value>) -> Value {
    json!({
        "name": "harvest",
        "type": "landscaper.gardener.cloud/kubernetes-manifest",
        "target": {"import": "cluster"},
        "config": {
            "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "kind": "ProviderConfiguration",
            "manifests": [{
                "manifest": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "harvest", "namespace": "default"},
                    "data": data,
                },
            }],
        },
    })
}

orangery_sdk::export_template!(Harvest);
