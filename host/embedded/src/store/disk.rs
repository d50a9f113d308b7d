//! The store's file: one redb database in the data folder. A single thread writes it, many changes per transaction.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use super::{ObjectName, ObjectVersion, StoreKey};

const OBJECTS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<'static, &str, u64> = TableDefinition::new("numbers");
/// The revision of the last change, deletions included, so that revisions never repeat.
const REVISION: &str = "revision";
/// The marker file that says what the folder holds. Its whole content is compared.
const MARKER: &str = "FORMAT";
const FORMAT: &str = "orangery data 1\n";
const DATABASE: &str = "objects.redb";

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataFolderError {
    /// Another process holds the folder.
    #[error("the data folder {folder} is in use by another process; stop that one or name another folder")]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder was written in another format.
    #[error("the data folder {folder} holds \"{found}\" and this version reads \"{known}\"; name another folder, or start the version that wrote it", known = FORMAT.trim())]
    OtherFormat {
        /// The folder.
        folder: PathBuf,
        /// What its marker says, cut to one line.
        found: String,
    },
    /// The folder has files, and none of them says that they are ours.
    #[error("the folder {folder} is not empty and not a data folder; name an empty or a new one")]
    NotOurs {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(
        "cannot use the file {file} of the data folder ({source}); check its owner, its permissions and the free space"
    )]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The database is damaged.
    #[error(
        "the database of the data folder {folder} cannot be read ({source}); restore a copy, or name another folder"
    )]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// What redb said.
        #[source]
        source: Box<redb::Error>,
    },
    /// An object in the database is not what this server writes.
    #[error("the object {object} in the data folder {folder} is damaged; restore a copy, or name another folder")]
    DamagedObject {
        /// The folder.
        folder: PathBuf,
        /// Its place: collection, namespace and name.
        object: String,
    },
}

/// One change for the file: the object's new bytes, or none when it is gone.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) key: StoreKey,
    pub(crate) revision: u64,
    pub(crate) bytes: Option<Bytes>,
}

/// What the file held when it was opened.
#[derive(Debug, Default)]
pub(crate) struct LoadedObjects {
    pub(crate) revision: u64,
    pub(crate) entries: Vec<(StoreKey, ObjectVersion)>,
}

/// Why changes are not in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskError {
    /// What the system or redb said.
    pub(crate) why: String,
    /// Whether there is no room.
    pub(crate) is_full: bool,
    /// Whether it is certain that they are not in the file: else that is known once the file can be read again.
    pub(crate) is_certain: bool,
}

/// Opens the database: once, and again after an error.
type OpenDatabase = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// The file.
pub(crate) struct Disk {
    open: OpenDatabase,
    /// None after an error: redb takes nothing more then.
    database: Option<Database>,
}

impl Disk {
    /// Opens the folder, making it if need be, and reads all objects.
    pub(crate) fn open(folder: &Path) -> Result<(Self, LoadedObjects), DataFolderError> {
        prepare(folder)?;
        let path = folder.join(DATABASE);
        let file = path.clone();
        let open = move || {
            let mut builder = redb::Builder::new();
            // The objects are kept in memory by the collections; the cache only has to hold the pages of a transaction.
            builder.set_cache_size(4 << 20);
            builder.create(&file)
        };
        Self::opened_by(Box::new(open), folder, &path)
    }

    pub(super) fn opened_by(
        open: OpenDatabase,
        folder: &Path,
        path: &Path,
    ) -> Result<(Self, LoadedObjects), DataFolderError> {
        let database = open().map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => DataFolderError::Locked { folder: folder.to_owned() },
            DatabaseError::UpgradeRequired(version) => {
                DataFolderError::OtherFormat { folder: folder.to_owned(), found: format!("redb {version}") }
            }
            DatabaseError::Storage(redb::StorageError::Io(source)) => {
                DataFolderError::File { file: path.to_owned(), source }
            }
            other => DataFolderError::Damaged { folder: folder.to_owned(), source: Box::new(other.into()) },
        })?;
        let loaded = load(&database, folder)?;
        Ok((Self { open, database: Some(database) }, loaded))
    }

    /// Writes changes in one transaction. Once it returns, they survive a kill of the process and a loss of power.
    ///
    /// After an error redb takes nothing more, and may have written the transaction or not. So the file is opened again, which
    /// says what of both it is.
    pub(crate) fn write(&mut self, lines: &[Line]) -> Result<(), DiskError> {
        let Err(error) = self.database().and_then(|database| transact(database, lines)) else { return Ok(()) };
        let is_full = matches!(&error, redb::Error::Io(error) if is_full(error));
        self.database = None;
        match self.has(lines) {
            Ok(true) => Ok(()),
            Ok(false) => Err(DiskError { why: error.to_string(), is_full, is_certain: true }),
            Err(unread) => {
                tracing::warn!(error = %unread, "the data folder cannot be read after an error");
                Err(DiskError { why: error.to_string(), is_full, is_certain: false })
            }
        }
    }

    /// Whether the file has changes that were to be written: a transaction is there whole or not at all.
    pub(crate) fn has(&mut self, lines: &[Line]) -> Result<bool, redb::Error> {
        let revision = revision(self.database()?)?;
        Ok(lines.last().is_none_or(|last| revision >= last.revision))
    }

    fn database(&mut self) -> Result<&Database, redb::Error> {
        let database = match self.database.take() {
            Some(database) => database,
            None => (self.open)()?,
        };
        Ok(self.database.insert(database))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

fn load(database: &Database, folder: &Path) -> Result<LoadedObjects, DataFolderError> {
    let damaged =
        |source: redb::Error| DataFolderError::Damaged { folder: folder.to_owned(), source: Box::new(source) };
    tables(database).map_err(damaged)?;
    let mut loaded = LoadedObjects { revision: revision(database).map_err(damaged)?, entries: Vec::new() };
    let mut objects = Vec::new();
    read(database, &mut objects).map_err(damaged)?;
    for (place, bytes) in objects {
        let entry = ObjectVersion::decode(bytes).ok().zip(parse(&place));
        let Some((entry, key)) = entry else {
            let object = place.replace('\0', " ");
            return Err(DataFolderError::DamagedObject { folder: folder.to_owned(), object });
        };
        loaded.entries.push((key, entry));
    }
    Ok(loaded)
}

fn tables(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(OBJECTS)?;
    transaction.open_table(NUMBERS)?;
    Ok(transaction.commit()?)
}

/// The revision of the last change in the file.
fn revision(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_read()?;
    Ok(transaction.open_table(NUMBERS)?.get(REVISION)?.map_or(0, |stored| stored.value()))
}

fn read(database: &Database, objects: &mut Vec<(String, Bytes)>) -> Result<(), redb::Error> {
    let transaction = database.begin_read()?;
    for row in transaction.open_table(OBJECTS)?.iter()? {
        let (place, bytes) = row?;
        objects.push((place.value().to_owned(), Bytes::copy_from_slice(bytes.value())));
    }
    Ok(())
}

fn transact(database: &Database, lines: &[Line]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for line in lines {
            let place = place(&line.key);
            match &line.bytes {
                Some(bytes) => objects.insert(place.as_str(), bytes.as_ref())?,
                None => objects.remove(place.as_str())?,
            };
        }
        if let Some(last) = lines.last() {
            transaction.open_table(NUMBERS)?.insert(REVISION, last.revision)?;
        }
    }
    Ok(transaction.commit()?)
}

/// Makes sure that the folder is ours, before anything in it is touched.
fn prepare(folder: &Path) -> Result<(), DataFolderError> {
    let marker = folder.join(MARKER);
    let failed = |file: &Path, source| DataFolderError::File { file: file.to_owned(), source };
    fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    match fs::read(&marker) {
        Ok(found) if found == FORMAT.as_bytes() => Ok(()),
        Ok(found) => {
            let found = String::from_utf8_lossy(&found).lines().next().unwrap_or_default().chars().take(60).collect();
            Err(DataFolderError::OtherFormat { folder: folder.to_owned(), found })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut listing = fs::read_dir(folder).map_err(|source| failed(folder, source))?;
            // A marker cut short by a crash lies there under its first name.
            if listing.any(|file| file.is_ok_and(|file| file.file_name() != "FORMAT.new")) {
                return Err(DataFolderError::NotOurs { folder: folder.to_owned() });
            }
            write_whole(&marker, FORMAT.as_bytes()).map_err(|source| failed(&marker, source))
        }
        Err(source) => Err(failed(&marker, source)),
    }
}

/// Writes a file so that after a crash it is there whole or not at all, readable by its owner only.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let fresh = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

fn place(key: &StoreKey) -> String {
    format!("{}\0{}\0{}", key.collection, key.name.namespace, key.name.name)
}

fn parse(place: &str) -> Option<StoreKey> {
    let mut parts = place.splitn(3, '\0');
    let (collection, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some(StoreKey { collection: collection.into(), name: ObjectName::new(namespace, name) })
}
