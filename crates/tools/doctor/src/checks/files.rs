//! Files and directories of the configuration: whether the daemon's user may use them, and others may not.

use crate::finding::Findings;
use crate::host::{FileFact, Host, Mode, User};
use crate::wants::{FileUse, Wants};

const MIB: u64 = 1 << 20;
/// Less space than this, and the accounting store soon cannot grow.
const SPACE_SMALL: u64 = 1024 * MIB;
/// Less space than this, and it may not even start.
const SPACE_NONE: u64 = 16 * MIB;

const READ: u32 = 4;
const WRITE_AND_ENTER: u32 = 3;
const READ_AND_WRITE: u32 = 6;

pub(super) fn files(_: &Wants, host: &Host, findings: &mut Findings) {
    for fact in &host.files {
        one(fact, host, findings);
    }
}

fn one(fact: &FileFact, host: &Host, findings: &mut Findings) {
    let user = &host.user;
    let (path, what) = (fact.path.display(), fact.used.name());
    if let Some(closed) = &fact.closed {
        let closed = closed.display();
        return findings.fault(
            format!(
                "{} may not enter {closed}, so it cannot use {what} {path}.",
                user.name
            ),
            format!("chmod a+x {closed}"),
        );
    }
    match fact.used {
        FileUse::Configuration | FileUse::Secret | FileUse::Read => read(fact, user, findings),
        FileUse::Socket => made(fact, host, findings),
        FileUse::Store => {
            made(fact, host, findings);
            space(fact, findings);
        }
    }
}

/// A file that the daemon reads.
fn read(fact: &FileFact, user: &User, findings: &mut Findings) {
    let (path, what, name) = (fact.path.display(), fact.used.name(), &user.name);
    let Some(mode) = fact.file else {
        return findings.fault(
            format!("{what} {path} does not exist."),
            format!("touch {path}  # then write it, or correct its name"),
        );
    };
    if !mode.allows(user, READ) {
        return findings.fault(
            format!("{name} cannot read {what} {path} (mode {:04o}).", mode.bits),
            format!("chgrp {name} {path} && chmod 0640 {path}"),
        );
    }
    if fact.has_secret && mode.bits & 0o007 != 0 {
        return findings.advice(
            format!(
                "Others may use {path} (mode {:04o}), which holds a secret.",
                mode.bits
            ),
            format!("chmod o= {path}"),
        );
    }
    findings.ok(format!("{name} can read {what} {path}."));
}

/// A file that the daemon makes, or writes if it exists.
fn made(fact: &FileFact, host: &Host, findings: &mut Findings) {
    let user = &host.user;
    let (path, what, name) = (fact.path.display(), fact.used.name(), &user.name);
    let directory = fact.path.parent().unwrap_or(&fact.path).display();
    let place = match fact.directory {
        Some(place) if place.is_directory => place,
        _ => {
            return findings.fault(
                format!("The directory {directory} of {what} does not exist."),
                format!("install -d -o {name} -m 0750 {directory}"),
            );
        }
    };
    if fact.is_read_only {
        return findings.fault(
            format!("The file system of {path} is mounted read-only."),
            format!("mount -o remount,rw {directory}  # or choose another directory"),
        );
    }
    let writes = |mode: &Mode| fact.used == FileUse::Store && mode.allows(user, READ_AND_WRITE);
    let is_existing = fact.used == FileUse::Store && fact.file.is_some();
    let is_open = match (is_existing, &fact.file) {
        (true, Some(file)) => writes(file),
        _ => place.allows(user, WRITE_AND_ENTER),
    };
    if is_open {
        findings.ok(format!("{name} can write {what} {path}."));
    } else if is_existing {
        findings.fault(
            format!("{name} cannot write {what} {path}, which another user owns."),
            format!("chown {name} {path}"),
        );
    } else if fact.used == FileUse::Socket && host.running.is_some() {
        findings.ok(format!("headend answers on {what} {path}."));
    } else {
        findings.fault(
            format!(
                "{name} cannot create {what} {path}: the directory {directory} has mode {:04o}.",
                place.bits
            ),
            format!("install -d -o {name} -m 0750 {directory}"),
        );
    }
}

fn space(fact: &FileFact, findings: &mut Findings) {
    let Some(free) = fact.free_bytes else {
        return;
    };
    let (path, mib) = (fact.path.display(), free / MIB);
    let mend = || {
        format!("free space there, or give accounting_store another directory than that of {path}")
    };
    if free < SPACE_NONE {
        findings.fault(
            format!(
                "The file system of {path} has {mib} MiB left; the accounting store cannot grow."
            ),
            mend(),
        );
    } else if free < SPACE_SMALL {
        findings.advice(
            format!("The file system of {path} has {mib} MiB left for accounting records."),
            mend(),
        );
    } else {
        findings.ok(format!("The file system of {path} has {mib} MiB free."));
    }
}
