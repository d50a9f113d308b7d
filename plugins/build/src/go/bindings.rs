//! The Go side of a world of `wit/`, generated, and the section that tells a component encoder of it.

use std::path::Path;

use wit_bindgen_core::{Files, wit_parser::Resolve};
use wit_bindgen_go::{Format, Opts};
use wit_component::{StringEncoding, embed_component_metadata};

use crate::Error;

/// Bindings.
pub(super) struct Bindings {
    /// Go files by their path in the package `main`.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// A custom section for the core module.
    pub(super) section: Vec<u8>,
}

impl Bindings {
    /// Generates those of a world.
    pub(super) fn generate(wit: &Path, world: &str) -> Result<Self, Error> {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(wit).map_err(|error| misfit(wit, &error))?;
        let world = resolve.select_world(&[package], Some(world)).map_err(|error| misfit(wit, &error))?;
        let mut section = Vec::new();
        embed_component_metadata(&mut section, &resolve, world, StringEncoding::UTF8, false)
            .map_err(|error| misfit(wit, &error))?;
        let mut files = Files::default();
        let options = Opts { format: Format::False, quiet: true, ..Opts::default() };
        options.build().generate(&mut resolve, world, &mut files).map_err(|error| misfit(wit, &error))?;
        // Assembly that only lets other targets compile cannot be laid over; the module has a go.mod of its own.
        let files = files.iter().filter(|(name, _)| name.ends_with(".go"));
        Ok(Self { files: files.map(|(name, text)| (name.to_owned(), text.to_vec())).collect(), section })
    }

    /// All that they are made of.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.files.iter().map(|(_, text)| text.as_slice())
    }
}

fn misfit(wit: &Path, error: &impl std::fmt::Display) -> Error {
    Error::Component { why: format!("{}: {error:#}", wit.display()) }
}
