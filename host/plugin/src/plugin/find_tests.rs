//! The tests of what a deployer has deployed (`wit/deployer/0.1.0/tests.wit`).

use std::time::Duration;

use orangery_core::{error::Fault, name::Namespace};
use orangery_proposal::deployer::Reads;
use serde_json::Value;

use super::Plugin;
use crate::{
    bindings::deployer::exports::orangery::deployer::tests,
    call::{self, CallImports},
    capability::locked,
    convert,
    error::Error,
    export::{ExportAnswer, ExportRequest, Interface},
    wasi::Randomness,
};

/// What is to be tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSubject {
    /// The namespace in which the user looks for it.
    pub namespace: Namespace,
    /// Its name, such as that of a release.
    pub name: String,
}

/// One test: an object that is created. A Job or a Pod is waited for to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct TestCase {
    /// Where it comes from, such as a file of a chart.
    pub source: String,
    /// The object, with `apiVersion`, `kind` and `metadata.name`.
    pub object: Value,
    /// Whether what is left of an earlier run is deleted before.
    pub delete_before: bool,
    /// Whether it is deleted once it has succeeded.
    pub delete_after_success: bool,
    /// Whether it is deleted once it has failed.
    pub delete_after_failure: bool,
}

impl Plugin {
    /// The tests of a subject in the order in which they run; `None` where the component does not know it, or knows of no
    /// tests at all. `reads` has the subject's cluster as the target.
    ///
    /// # Errors
    ///
    /// The component's own fault, or the host's reason why there is no answer.
    pub async fn find_tests(&self, of: &TestSubject, reads: Reads) -> Result<Option<Vec<TestCase>>, Fault> {
        let tenant = Some(of.namespace.clone());
        let component = self.component_for(&tenant).await.map_err(|error| self.fault(&error))?;
        if !component.exports(Interface::Tests) {
            return Ok(None);
        }
        // Same subject, same reads, same answer: nothing is random or timed.
        let call = self.call(tenant, CallImports::Deployer(reads, Randomness::Number(0)), Duration::ZERO);
        let transcript = call.transcript.clone();
        let subject = tests::Subject { namespace: of.namespace.to_string(), name: of.name.clone() };
        let answer = call::run(&self.sandbox, &component, call, ExportRequest::FindTests(subject)).await;
        let ExportAnswer::FindTests(found) = answer.map_err(|error| self.fault(&error))? else {
            return Err(self.fault(&Error::of_another_function()));
        };
        let found = found.map_err(convert::fault)?;
        let words = locked(&transcript);
        let cases = found.map(|found| convert::test_cases(found, &self.budget, &words)).transpose();
        cases.map_err(|error| self.fault(&error))
    }
}
