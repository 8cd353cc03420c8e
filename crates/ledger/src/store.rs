//! The file: a redb database with a table that maps numbers to records, and one that maps keys to drafts.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use reactor::disk::{self, DiskFile};
use redb::{
    Builder, Database, DatabaseError, ReadableTable, ReadableTableMetadata, StorageBackend,
    TableDefinition, TableError,
};

use crate::RecordId;
use crate::inbox::Batch;

const RECORDS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("records");
const DRAFTS: TableDefinition<'static, u128, &'static [u8]> = TableDefinition::new("drafts");
/// The size of redb's cache, in bytes.
const CACHE_OCTETS: usize = 16 << 20;
/// A file above this size with less than an eighth of it in records is rewritten when it is opened.
const LARGE_OCTETS: u64 = 8 << 20;
/// About the size of a draft.
const DRAFT_OCTETS: u64 = 256;
/// The most damaged files kept aside.
const ASIDE_MAX: u32 = 100;

/// Opens the file, also after a failure.
pub(crate) type Opener = Box<dyn Fn() -> io::Result<Database> + Send + Sync>;

/// Totals of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) records: u64,
    pub(crate) octets: u64,
    pub(crate) drafts: u64,
    /// The number of the last record.
    pub(crate) last: u64,
}

pub(crate) struct Store {
    opener: Opener,
    /// `None` while it is being reopened.
    open: Mutex<Option<(Arc<Database>, Totals)>>,
}

impl Store {
    pub(crate) fn new(opener: Opener) -> io::Result<(Self, Totals)> {
        let database = opener()?;
        let totals = totals(&database)?;
        let open = Mutex::new(Some((Arc::new(database), totals)));
        Ok((Self { opener, open }, totals))
    }

    /// Writes a batch; returns the file's new totals.
    ///
    /// # Errors
    /// The disk's error. The batch may or may not be on disk, and may be written again.
    pub(crate) fn commit(&self, batch: &Batch) -> io::Result<Totals> {
        let (database, before) = self.database()?;
        let after = guarded(|| write(&database, batch, before))?;
        if let Some((_, totals)) = self.lock().as_mut() {
            *totals = after;
        }
        Ok(after)
    }

    /// Up to `max` records after `after`, except those in `acknowledged`, which is sorted.
    pub(crate) fn read(
        &self,
        after: RecordId,
        max: usize,
        acknowledged: &[u64],
    ) -> io::Result<Vec<(RecordId, Vec<u8>)>> {
        let (database, _) = self.database()?;
        let Some(first) = after.0.checked_add(1) else {
            return Ok(Vec::new());
        };
        guarded(|| {
            let reading = database.begin_read().map_err(told)?;
            let table = match reading.open_table(RECORDS) {
                Ok(table) => table,
                Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                Err(error) => return Err(told(error)),
            };
            let mut found = Vec::new();
            for item in table.range(first..).map_err(told)? {
                let (id, record) = item.map_err(told)?;
                if found.len() == max {
                    break;
                }
                if acknowledged.binary_search(&id.value()).is_err() {
                    found.push((RecordId(id.value()), record.value().to_vec()));
                }
            }
            Ok(found)
        })
    }

    /// Up to `max` drafts from the key `from` on, by key.
    pub(crate) fn drafts(&self, from: u128, max: usize) -> io::Result<Vec<(u128, Vec<u8>)>> {
        let (database, _) = self.database()?;
        guarded(|| {
            let reading = database.begin_read().map_err(told)?;
            let table = match reading.open_table(DRAFTS) {
                Ok(table) => table,
                Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                Err(error) => return Err(told(error)),
            };
            let mut found = Vec::new();
            for item in table.range(from..).map_err(told)?.take(max) {
                let (key, draft) = item.map_err(told)?;
                found.push((key.value(), draft.value().to_vec()));
            }
            Ok(found)
        })
    }

    /// Closes and reopens the file; returns its totals.
    pub(crate) fn reopen(&self) -> io::Result<Totals> {
        let closed = self.lock().take();
        if let Some((mut database, _)) = closed {
            // A reader holds the database for the duration of a read.
            while let Err(shared) = Arc::try_unwrap(database) {
                database = shared;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let database = (self.opener)()?;
        let totals = totals(&database)?;
        *self.lock() = Some((Arc::new(database), totals));
        Ok(totals)
    }

    fn database(&self) -> io::Result<(Arc<Database>, Totals)> {
        let open = self.lock();
        let (database, totals) = open.as_ref().ok_or_else(|| {
            io::Error::other("the file is about to be opened anew after a failure")
        })?;
        Ok((Arc::clone(database), *totals))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Arc<Database>, Totals)>> {
        self.open.lock().expect("no thread panics with the lock")
    }
}

/// The outcome of checking the file before use.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// The new path of a damaged file, and what was wrong with it.
    pub(crate) damaged: Option<(PathBuf, String)>,
    /// Whether it was damaged and has been repaired.
    pub(crate) repaired: bool,
}

/// Ensures that an intact file exists and is not mostly empty; a file damaged beyond repair is moved aside.
pub(crate) fn settle(path: &Path) -> io::Result<Settled> {
    let checked = guarded(|| {
        let mut database = open(path)?;
        let is_whole = database.check_integrity().map_err(opened)?;
        let totals = totals(&database)?;
        let size = std::fs::metadata(path)?.len();
        if size > LARGE_OCTETS && size / 8 > totals.octets + totals.drafts * DRAFT_OCTETS {
            rewrite(path, &database)?;
        }
        Ok(is_whole)
    });
    match checked {
        Ok(is_whole) => Ok(Settled {
            damaged: None,
            repaired: !is_whole,
        }),
        Err(error) if is_damage(&error) => {
            let aside = move_aside(path)?;
            drop(open(path)?);
            Ok(Settled {
                damaged: Some((aside, error.to_string())),
                repaired: false,
            })
        }
        Err(error) => Err(error),
    }
}

/// Replaces a mostly empty file by one with only its records, because redb's own compaction leaves it large.
fn rewrite(path: &Path, database: &Database) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let copy = open(&new)?;
    let reading = database.begin_read().map_err(told)?;
    let writing = copy.begin_write().map_err(told)?;
    if let Ok(from) = reading.open_table(RECORDS) {
        let mut to = writing.open_table(RECORDS).map_err(told)?;
        for item in from.iter().map_err(told)? {
            let (id, record) = item.map_err(told)?;
            to.insert(id.value(), record.value()).map_err(told)?;
        }
    }
    if let Ok(from) = reading.open_table(DRAFTS) {
        let mut to = writing.open_table(DRAFTS).map_err(told)?;
        for item in from.iter().map_err(told)? {
            let (key, draft) = item.map_err(told)?;
            to.insert(key.value(), draft.value()).map_err(told)?;
        }
    }
    writing.commit().map_err(told)?;
    drop(copy);
    disk::replace(&new, path)
}

/// Whether an error shows that the file's content is damaged, such as one that is too short.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

/// The file as redb reads and writes it.
#[derive(Debug)]
struct Disk(DiskFile);

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; length];
        self.0.read_exact_at(&mut octets, offset)?;
        Ok(octets)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.0.write_all_at(octets, offset)
    }
}

/// Opens or creates the file, accessible only to its owner.
pub(crate) fn open(path: &Path) -> io::Result<Database> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let file = DiskFile::open(path, &options).map_err(|error| with_path(path, &error))?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        let message = format!("{}: is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if !file.lock()? {
        let error = opened(DatabaseError::DatabaseAlreadyOpen);
        return Err(with_path(path, &error));
    }
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_OCTETS);
    builder.create_with_file_format_v3(true);
    let database = builder.create_with_backend(Disk(file));
    let database = database.map_err(|error| with_path(path, &opened(error)))?;
    // Only once it is known to be ours.
    if meta.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(|error| with_path(path, &error))?;
    }
    Ok(database)
}

fn write(database: &Database, batch: &Batch, before: Totals) -> io::Result<Totals> {
    let mut after = before;
    let writing = database.begin_write().map_err(told)?;
    {
        let mut table = writing.open_table(RECORDS).map_err(told)?;
        for (id, record) in batch.records() {
            let old = table.insert(id, record).map_err(told)?;
            if let Some(old) = old {
                after.records -= 1;
                after.octets -= old.value().len() as u64;
            }
            after.records += 1;
            after.octets += record.len() as u64;
            after.last = after.last.max(id);
        }
        for id in batch.removals() {
            if let Some(old) = table.remove(id).map_err(told)? {
                after.records -= 1;
                after.octets -= old.value().len() as u64;
            }
        }
        let drafts = batch.drafts();
        if drafts.len() > 0 {
            let mut table = writing.open_table(DRAFTS).map_err(told)?;
            for (key, draft) in drafts {
                let old = match draft {
                    Some(draft) => table.insert(key, draft).map_err(told)?,
                    None => table.remove(key).map_err(told)?,
                };
                after.drafts -= u64::from(old.is_some());
                after.drafts += u64::from(draft.is_some());
            }
        }
    }
    writing.commit().map_err(told)?;
    Ok(after)
}

fn totals(database: &Database) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let reading = database.begin_read().map_err(told)?;
    match reading.open_table(RECORDS) {
        Ok(table) => {
            for item in table.iter().map_err(told)? {
                let (id, record) = item.map_err(told)?;
                totals.records += 1;
                totals.octets += record.value().len() as u64;
                totals.last = id.value();
            }
        }
        Err(TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(told(error)),
    }
    match reading.open_table(DRAFTS) {
        Ok(table) => totals.drafts = table.len().map_err(told)?,
        Err(TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(told(error)),
    }
    Ok(totals)
}

/// Moves a damaged file to the first free name beside it.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    for number in 1..=ASIDE_MAX {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".damaged-{number}"));
        let aside = PathBuf::from(aside);
        if !aside.try_exists()? {
            disk::replace(path, &aside)?;
            return Ok(aside);
        }
    }
    let message = format!(
        "{}: is damaged, and {ASIDE_MAX} damaged files stand beside it; remove those",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
}

/// A damaged file may make redb panic; that counts as damage too.
fn guarded<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "the file has what its reader does not expect";
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    })
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    let right = match error.kind() {
        io::ErrorKind::NotFound => "; its directory must be there",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{}: {error}{right}", path.display()))
}

/// Converts an error from opening.
fn opened(error: DatabaseError) -> io::Error {
    match error {
        DatabaseError::DatabaseAlreadyOpen => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another process has the file open",
        ),
        DatabaseError::UpgradeRequired(version) => io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the file is of version {version}, which is not read here"),
        ),
        DatabaseError::RepairAborted => io::Error::other("its repair was given up"),
        DatabaseError::Storage(error) => told(error),
        other => io::Error::other(other.to_string()),
    }
}

fn told(error: impl Into<redb::Error>) -> io::Error {
    match error.into() {
        redb::Error::Io(error) => error,
        redb::Error::Corrupted(message) => io::Error::new(io::ErrorKind::InvalidData, message),
        other => io::Error::other(other.to_string()),
    }
}
