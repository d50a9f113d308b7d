//! A cluster without objects and a blueprint without files.

use orangery_core::{error::Fault, port::BoxFuture};
use orangery_ocm::Files;
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters},
};
use serde_json::Value;

/// Has no objects, no kinds and no files.
pub struct Empty;

impl Clusters for Empty {
    fn get<'a>(&'a self, _: &'a ClusterRef, _: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async { Ok(None) })
    }

    fn get_many<'a>(
        &'a self,
        _: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(async { Ok(vec![None; keys.len()]) })
    }

    fn list<'a>(&'a self, _: &'a ClusterRef, _: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { Ok("1.33".to_owned()) })
    }

    fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl Files for Empty {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("{path} does not exist"))
    }

    fn list(&self, _: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}
