//! From sections to files: the daemon's own reader judges them first, and what it refuses is left out and reported.
//! This module does I/O.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use base::Redacted;
use convert::{Wrong, repair, take_back};
use daemon::config;
use settings::Faults;

use crate::Import;
use crate::document::{Document, Table, Value};
use crate::report::Report;

/// Sections in the order in which they are written. Others follow.
const ORDER: &[&str] = &[
    "control",
    "lns",
    "lac",
    "pppoe",
    "pppoe.interface",
    "l2tp",
    "limits",
    "log",
    "ppp",
    "pool",
    "prefix_pool",
    "ipv6",
    "users",
    "filter",
    "radius",
    "radius.server",
    "client",
    "tun",
    "bgp",
    "bgp.neighbor",
    "bgp.dynamic",
    "bgp.policy",
];

/// Name of the configuration among the files.
pub(crate) const CONFIG: &str = "headend.toml";

/// Name of the users file.
pub(crate) const USERS: &str = "users.toml";

/// Name of the filters among the files.
pub(crate) const FILTERS: &str = "filters.txt";

/// A file to write.
#[derive(Debug)]
pub struct Output {
    /// Its name in the output directory.
    pub name: String,
    /// Its content.
    pub text: Redacted<String>,
}

/// A directory of our own that is removed again.
struct Stage(PathBuf);

impl Stage {
    fn new() -> Result<Stage> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("headend-import-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("{}: cannot be made", path.display()))?;
        Ok(Stage(path))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The directory is in the system's own for temporary files, which removes what stays.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Leaves out what the daemon refuses, and returns the files, the configuration first.
///
/// # Errors
/// The daemon refuses the result whatever is left out, or the disk does not hold the files.
pub fn finish(import: &mut Import) -> Result<Vec<Output>> {
    let stage = Stage::new()?;
    import.config.sort(ORDER);
    for secret in &import.secrets {
        write(&stage.0, &secret.name, secret.text.reveal(), false)?;
    }
    if import.config.has("filter") {
        write(&stage.0, FILTERS, &import.filters, false)?;
    }
    if import.config.has("users") {
        let path = stage.0.join(USERS);
        let judge = |text: &str| {
            write(&stage.0, USERS, text, true)?;
            Ok(config::load_users(&path).err())
        };
        repair(&mut import.users, &mut import.report, "", judge, remove)?;
    }
    add_role(&mut import.config);
    import.config.sort(ORDER);
    let head = import.head.clone();
    let path = stage.0.join(CONFIG);
    let judge = |text: &str| {
        write(&stage.0, CONFIG, text, true)?;
        Ok(config::load(&path).err())
    };
    repair(
        &mut import.config,
        &mut import.report,
        &head,
        judge,
        remove_keys,
    )?;
    let known = keys(import);
    import.report.verify(|key| {
        // Readers say neighbor of every peer.
        let dynamic = key.replacen("bgp.neighbor", "bgp.dynamic", 1);
        known.contains(key) || known.contains(&dynamic)
    });
    import.report.sort();
    let mut files = vec![Output {
        name: CONFIG.to_owned(),
        text: Redacted::new(import.config.write(&import.head).0),
    }];
    if import.config.has("users") {
        files.push(Output {
            name: USERS.to_owned(),
            text: Redacted::new(import.users.write("").0),
        });
    }
    if import.config.has("filter") {
        files.push(Output {
            name: FILTERS.to_owned(),
            text: Redacted::new(import.filters.clone()),
        });
    }
    let named = secret_files(&import.config);
    let secrets = import.secrets.drain(..);
    files.extend(secrets.filter(|secret| named.contains(&secret.name)));
    Ok(files)
}

/// The names of every section and key of the result.
fn keys(import: &Import) -> BTreeSet<String> {
    let tables = import.config.tables.iter().chain(&import.users.tables);
    let names = tables.flat_map(|table| {
        let entries = table.entries.iter().map(|entry| table.name_of(entry));
        entries.chain([table.path.clone()])
    });
    names.collect()
}

/// The files that the configuration names as holding a secret.
fn secret_files(config: &Document) -> Vec<String> {
    let entries = config.tables.iter().flat_map(|table| &table.entries);
    let named = entries.filter(|entry| entry.key == "secret_file");
    named
        .filter_map(|entry| match &entry.value {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Removes the entries that have faults; sections whose headers have. Returns whether anything was removed.
fn remove(document: &mut Document, report: &mut Report, faults: &Faults, wrong: &[Wrong]) -> bool {
    let is_speaker = |fault: &&settings::Fault| matches!(&*fault.key, "bgp.asn" | "bgp.router_id");
    if let Some(fault) = faults
        .iter()
        .find(is_speaker)
        .filter(|fault| fault.message.starts_with("is missing"))
    {
        // Without a speaker, its neighbours and policies have no place.
        let is_bgp = |table: &mut Table| table.path == "bgp" || table.path.starts_with("bgp.");
        let removed = document.tables.extract_if(.., is_bgp).collect::<Vec<_>>();
        take_back(
            &removed,
            &format!("{} {}", fault.key, fault.message),
            report,
        );
        return true;
    }
    let mut gone = None;
    for ((table, entry), message) in wrong {
        if gone == Some(*table) {
            continue;
        }
        let before = document.tables.len();
        let removed = match entry {
            Some(entry) => remove_entry(document, *table, *entry),
            None => document.remove(*table),
        };
        gone = (document.tables.len() < before).then_some(*table);
        take_back(&removed, message, report);
    }
    !wrong.is_empty()
}

/// [`remove`] for the configuration, which needs a role afterwards.
fn remove_keys(
    document: &mut Document,
    report: &mut Report,
    faults: &Faults,
    wrong: &[Wrong],
) -> bool {
    let removed = remove(document, report, faults, wrong);
    if removed {
        add_role(document);
    }
    removed
}

/// The daemon needs a role: one that does nothing, if the source has none.
fn add_role(document: &mut Document) {
    let roles = ["lns", "lac", "pppoe", "bgp"];
    if !roles.iter().any(|role| document.has(role)) {
        let why = "not in the source: it has nothing that headend does";
        document.note("lac", "listen", Value::texts(&["127.0.0.1:0"]), why);
    }
}

/// Removes an entry. The result must not let more through than the source: a term that loses a condition is removed,
/// unless it denies; a direction that loses its policy is closed.
fn remove_entry(document: &mut Document, table: usize, entry: usize) -> Vec<Table> {
    let whole = &mut document.tables[table];
    let key = whole.entries[entry].key.as_str();
    let is_action = ["set_", "add_", "remove_", "prepend"]
        .iter()
        .any(|start| key.starts_with(start));
    let denies = whole.get("then") == Some(&"deny".into());
    if whole.path == "bgp.policy.term" && (key == "then" || !is_action && !denies) {
        return vec![document.tables.remove(table)];
    }
    let mut removed = whole.clone();
    removed.entries = vec![whole.entries.remove(entry)];
    if matches!(&*removed.entries[0].key, "import" | "export") {
        let closed = "the policy of the source cannot be used";
        let from = removed.entries[0].from.clone();
        whole.set(&removed.entries[0].key, "deny", &from, closed);
    }
    vec![removed]
}

/// Writes the files to `folder`, which is made if needed.
///
/// # Errors
/// A file exists and `force` is off: then nothing is written. Or the disk refuses.
pub(crate) fn save(folder: &Path, files: &[Output], force: bool) -> Result<()> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(folder);
    made.with_context(|| format!("{}: cannot be made", folder.display()))?;
    if !force {
        for file in files {
            let path = folder.join(&file.name);
            let exists = path.symlink_metadata().is_ok();
            ensure!(!exists, "{} exists; --force replaces it", path.display());
        }
    }
    for file in files {
        write(folder, &file.name, file.text.reveal(), force)?;
    }
    Ok(())
}

/// Writes a file that its owner alone may read. A file of that name is replaced, not written into: it may be a link.
fn write(folder: &Path, name: &str, text: &str, force: bool) -> Result<()> {
    let path = folder.join(name);
    let failed = || format!("{}: cannot be written", path.display());
    let target = if force {
        folder.join(format!(".{name}.{}.new", std::process::id()))
    } else {
        path.clone()
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&target);
    let mut file = file.with_context(failed)?;
    let written = file.write_all(text.as_bytes());
    let written = written.and_then(|()| match force {
        true => std::fs::rename(&target, &path),
        false => Ok(()),
    });
    if written.is_err() {
        // Half a file would look like a whole one.
        let _ = std::fs::remove_file(&target);
    }
    written.with_context(failed)
}

/// The advice of `headend check` about the files, a line each.
///
/// # Errors
/// The check finds a fault.
pub(crate) fn advice(files: &[Output]) -> Result<String> {
    let stage = Stage::new()?;
    for file in files {
        write(&stage.0, &file.name, file.text.reveal(), false)?;
    }
    let settings =
        config::load(&stage.0.join(CONFIG)).map_err(|faults| anyhow::anyhow!("{faults}"))?;
    let lines = settings.advice.of(Path::new(CONFIG)).to_string();
    Ok(if lines.is_empty() {
        lines
    } else {
        lines + "\n"
    })
}
