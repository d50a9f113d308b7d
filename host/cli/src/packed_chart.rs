//! The files of a packed chart: read, and packed anew.

use std::{
    io::{Read as _, Write as _},
    path::PathBuf,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// The most bytes of a chart, and of a release, that are unpacked (C-244).
pub(crate) const MOST_UNPACKED_BYTES: u64 = 64 << 20;

/// A file of a chart.
pub(crate) struct ChartFile {
    header: tar::Header,
    pub(crate) path: PathBuf,
    pub(crate) content: Vec<u8>,
}

/// The files of a chart; `None` where it is none, or too large.
pub(crate) fn unpacked(packed: &[u8]) -> Option<Vec<ChartFile>> {
    let mut source = tar::Archive::new(GzDecoder::new(packed).take(MOST_UNPACKED_BYTES));
    let mut files = Vec::new();
    for entry in source.entries().ok()? {
        let mut entry = entry.ok()?;
        let (path, header, mut content) = (entry.path().ok()?.into_owned(), entry.header().clone(), Vec::new());
        entry.read_to_end(&mut content).ok()?;
        files.push(ChartFile { header, path, content });
    }
    Some(files)
}

/// A chart of these files.
pub(crate) fn packed(files: impl IntoIterator<Item = ChartFile>) -> Option<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for ChartFile { mut header, path, content } in files {
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, &path, content.as_slice()).ok()?;
    }
    let mut packed = archive.into_inner().ok()?;
    packed.flush().ok()?;
    packed.finish().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A chart of these texts.
    pub(crate) fn chart(files: &[(&str, &str)]) -> Vec<u8> {
        let file = |(path, text): &(&str, &str)| {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            ChartFile { header, path: path.into(), content: text.as_bytes().to_vec() }
        };
        packed(files.iter().map(file)).unwrap()
    }

    /// The texts of a chart.
    pub(crate) fn texts(packed: &[u8]) -> Vec<(String, String)> {
        let text = |file: ChartFile| (file.path.display().to_string(), String::from_utf8(file.content).unwrap());
        unpacked(packed).unwrap().into_iter().map(text).collect()
    }
}
