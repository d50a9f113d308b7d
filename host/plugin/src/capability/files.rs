//! `orangery:template/files`: the files of one blueprint, nothing else.

use orangery_ocm::Files;
use wasmtime::component::{HasData, Linker};

use super::{Capabilities, Guest};
use crate::{
    bindings::template::orangery::template::files::{self, Host},
    meter::Meter,
};

/// What `files` can see of a guest.
pub(crate) struct FilesView<'a> {
    port: Option<&'a dyn Files>,
    meter: &'a mut Meter,
}

struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = FilesView<'a>;
}

pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    files::add_to_linker::<Guest, HasFiles>(linker, |guest| guest.capabilities.files())
}

impl Capabilities {
    /// What is behind `files`.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        FilesView { port: self.context.as_ref().map(|context| context.files.as_ref()), meter: &mut self.meter }
    }
}

type FileCallResult<T> = wasmtime::Result<Result<T, String>>;

impl FilesView<'_> {
    /// The path as the port wants it. A blueprint's own paths never need `..`, so none leaves it.
    fn place<'p>(&mut self, path: &'p str) -> wasmtime::Result<Result<(&dyn Files, &'p str), String>> {
        self.meter.host_call(path.len())?;
        let Some(port) = self.port else { return Ok(Err("there is no blueprint in this call".to_owned())) };
        let path = path.strip_prefix("./").unwrap_or(path).trim_matches('/');
        if path.contains(['\\', '\0']) || path.split('/').any(|part| part == "..") {
            return Ok(Err("a path in a blueprint has no `..`, no backslash and no NUL".to_owned()));
        }
        Ok(Ok((port, path)))
    }
}

impl Host for FilesView<'_> {
    async fn read(&mut self, path: String) -> FileCallResult<Vec<u8>> {
        let read = match self.place(&path)? {
            Ok((port, path)) => port.read(path),
            Err(refusal) => Err(refusal),
        };
        if let Ok(bytes) = &read {
            self.meter.carry(bytes.len())?;
        }
        Ok(read)
    }

    async fn list(&mut self, path: String) -> FileCallResult<Vec<String>> {
        let list = match self.place(&path)? {
            Ok((port, path)) => port.list(path),
            Err(refusal) => Err(refusal),
        };
        if let Ok(names) = &list {
            self.meter.carry(names.iter().map(String::len).sum())?;
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        budget::{Budget, BudgetLimit},
        epochs::Epochs,
        error::CallStop,
        meter::SharedMemory,
    };

    struct Echo;

    impl Files for Echo {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            Ok(path.as_bytes().to_vec())
        }

        fn list(&self, path: &str) -> Result<Vec<String>, String> {
            Ok(vec![path.to_owned()])
        }
    }

    fn with_view<T>(budget: Budget, test: impl AsyncFnOnce(&mut FilesView<'_>) -> T) -> T {
        let mut meter = Meter::new(budget, Arc::new(SharedMemory::new(0)), Arc::new(Epochs::default()));
        futures::executor::block_on(test(&mut FilesView { port: Some(&Echo), meter: &mut meter }))
    }

    #[test]
    fn no_path_leaves_the_blueprint() {
        with_view(Budget::default(), async |view| {
            for path in ["..", "../a", "a/../../b", "a/..", "a\\..\\b", "a\0b"] {
                assert_eq!(
                    view.read(path.to_owned()).await.unwrap(),
                    Err("a path in a blueprint has no `..`, no backslash and no NUL".to_owned()),
                    "{path:?}"
                );
            }
            for (path, port) in [("a/b", "a/b"), ("/a", "a"), ("./a/", "a"), ("", ""), ("a..b", "a..b")] {
                assert_eq!(view.read(path.to_owned()).await.unwrap(), Ok(port.as_bytes().to_vec()));
                assert_eq!(view.list(path.to_owned()).await.unwrap(), Ok(vec![port.to_owned()]));
            }
        });
    }

    #[test]
    fn what_is_read_is_charged_to_the_call() {
        with_view(Budget { host_call_bytes: 7, ..Budget::default() }, async |view| {
            assert_eq!(view.read("abc".to_owned()).await.unwrap(), Ok(b"abc".to_vec()));
            let error = view.read("a".to_owned()).await.unwrap_err();
            assert_eq!(error.downcast_ref::<CallStop>(), Some(&CallStop::Limit(BudgetLimit::HostCallBytes)));
        });
    }
}
