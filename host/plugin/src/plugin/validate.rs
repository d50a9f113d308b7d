//! What a deployer says of a configuration without a cluster (`wit/deployer/0.1.0/validate.wit`).

use std::time::Duration;

use orangery_core::error::{Code, Fault, Problem};
use serde_json::Value;

use super::Plugin;
use crate::{
    call::{self, CallImports},
    convert,
    error::Error,
    export::{ExportAnswer, ExportRequest, Interface},
};

impl Plugin {
    /// What is wrong with a provider configuration, in the order in which a reader would meet it; empty where nothing is, `None` where
    /// the component cannot tell.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer.
    pub async fn problems(&self, config: &Value) -> Result<Option<Vec<Problem>>, Fault> {
        match self.validate(ExportRequest::Problems(config.to_string())).await? {
            None => Ok(None),
            Some(ExportAnswer::Problems(found)) => Ok(Some(found.into_iter().map(convert::problem).collect())),
            Some(_) => Err(self.fault(&Error::of_another_function())),
        }
    }

    /// The JSON Schema of the provider configuration; `None` where the component has none.
    ///
    /// # Errors
    ///
    /// The host's reason why there is no answer, or it is no JSON object.
    pub async fn configuration_schema(&self) -> Result<Option<Value>, Fault> {
        match self.validate(ExportRequest::Schema).await? {
            None => Ok(None),
            Some(ExportAnswer::Schema(text)) => match serde_json::from_str(&text) {
                Ok(Value::Object(schema)) => Ok(Some(Value::Object(schema))),
                Ok(_) | Err(_) => {
                    let message =
                        "the schema of the configuration is no JSON object; correct `schema` of the component";
                    Err(Fault::invalid(Code::InternalProblem, message))
                }
            },
            Some(_) => Err(self.fault(&Error::of_another_function())),
        }
    }

    async fn validate(&self, request: ExportRequest) -> Result<Option<ExportAnswer>, Fault> {
        let component = self.component_for(&None).await.map_err(|error| self.fault(&error))?;
        if !component.exports(Interface::Validate) {
            return Ok(None);
        }
        // As gates are: nothing is read, random or timed, so the same configuration has the same problems.
        let call = self.call(None, CallImports::Gate(0), Duration::ZERO);
        let answer = call::run(&self.sandbox, &component, call, request).await;
        answer.map(Some).map_err(|error| self.fault(&error))
    }
}
