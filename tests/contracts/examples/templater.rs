//! An engine that asks all that there is to ask and answers by every word.

use orangery_contract_guests as _;

wit_bindgen::generate!({ world: "templater-with-check", path: "../../wit/template/0.1.0" });

use exports::orangery::template::{
    check::{self, Findings, Reference},
    template::{self, Execution, Failure, InputStep, Output, Rendered, Request},
};
use orangery::template::{components, files, kubeconfigs, randomness};

struct Guest;

fn word(of: Execution) -> &'static str {
    match of {
        Execution::Import => "import",
        Execution::Deploy => "deploy",
        Execution::Subinstallation => "subinstallation",
        Execution::Export => "export",
        Execution::ImportMapping => "import-mapping",
        Execution::ExportMapping => "export-mapping",
    }
}

fn failure(message: String, file: Option<String>) -> Failure {
    let reads = vec![
        vec![InputStep::Field("imports".to_string()), InputStep::Items],
        vec![InputStep::Field("values".to_string()), InputStep::Entries],
    ];
    Failure { message, file, line: Some(1), column: Some(2), snippet: Some("> 1".to_string()), reads }
}

/// All answers of the host, one after the other.
fn asked(of: &Request) -> Result<String, String> {
    let identity = vec![("name".to_string(), "shop".to_string())];
    let descriptor = components::component(None, &identity)?;
    let resources = components::resources(Some(&descriptor), &identity)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let answers = [
        word(of.execution).to_string(),
        of.name.clone(),
        of.inputs.clone(),
        of.state.clone().unwrap_or_default(),
        text(files::read("greeting.txt")?),
        files::list("")?.join("+"),
        descriptor,
        resources.join("+"),
        components::resource_key("reference")?,
        text(components::resource_content("reference")?),
        kubeconfigs::issue_credential("serviceAccount", "{\"target\":\"garden\"}")?,
        randomness::now(),
        randomness::bytes("password", 8).len().to_string(),
    ];
    Ok(answers.join("\n"))
}

impl template::Guest for Guest {
    fn render(of: Request) -> Result<Rendered, Failure> {
        if of.template == "fail" {
            return Err(failure("it fails".to_string(), of.file));
        }
        let output = match of.template.as_str() {
            "document" => Output::Document("{\"a\":1}".to_string()),
            _ => Output::Text(asked(&of).map_err(|message| failure(message, None))?),
        };
        Ok(Rendered { output, state: Some("{\"kept\":true}".to_string()), warnings: vec!["careful".to_string()] })
    }
}

impl check::Guest for Guest {
    fn check(of: Request) -> Option<Findings> {
        let path = vec!["imports".to_string(), "host".to_string()];
        let reference = Reference { path, file: of.file.clone(), line: Some(3), column: Some(4) };
        Some(Findings { failures: vec![failure("bad".to_string(), of.file)], references: vec![reference] })
    }
}

export!(Guest);
