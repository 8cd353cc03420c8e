//! The USE method for this host: utilisation, saturation and errors of each resource, from two readings of /proc.
//!
//! Source: Brendan Gregg, "Thinking Methodically about Performance" (ACM Queue, 2012), and its checklist for Linux.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `read` | the files as numbers | none |
//! | `judge` | the rows of two readings, with verdicts | none |
//!
//! The caller reads the files of [`FILES`] twice. Start reading in [`rows`].

mod judge;
pub mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use judge::rows;

/// The files of one reading; those that a kernel does not have are left out.
pub const FILES: &[&str] = &[
    "/proc/stat",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/pressure/io",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/net/dev",
    "/proc/net/softnet_stat",
    "/proc/net/snmp",
    "/proc/net/netstat",
    "/proc/net/udp",
    "/proc/net/udp6",
    "/proc/sys/fs/file-nr",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/net/netfilter/nf_conntrack_max",
    "/proc/net/stat/nf_conntrack",
    "/proc/diskstats",
];

/// What was read at one moment.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Each file of [`FILES`] with its text.
    pub files: BTreeMap<&'static str, String>,
    /// The output of `tc -j -s qdisc show`, if tc is there.
    pub queues: Option<String>,
    /// The speed of each interface that has one, in bits per second.
    pub speeds: BTreeMap<String, u64>,
    /// Frames that each interface missed because its receive ring was full.
    pub missed: BTreeMap<String, u64>,
    /// What each process has open, as far as this user may see it.
    pub processes: Vec<Process>,
    /// The time that the daemon's loop was busy since its start, in seconds, if a daemon runs.
    pub loop_busy_s: Option<f64>,
}

impl Reading {
    fn file(&self, name: &str) -> &str {
        self.files.get(name).map_or("", String::as_str)
    }
}

/// The open files of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its command and its number, as "headend (417)".
    pub name: String,
    /// How many it has.
    pub open: u64,
    /// How many it may have.
    pub limit: u64,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// How much of the resource is in use.
    Utilisation,
    /// Work that waits, or was refused because the resource was full.
    Saturation,
    /// Work that failed.
    Errors,
}

impl Aspect {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Aspect::Utilisation => "utilisation",
            Aspect::Saturation => "saturation",
            Aspect::Errors => "errors",
        }
    }
}

/// A judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Below the threshold.
    Ok,
    /// So much in use that work may wait.
    High,
    /// Work waits, or was refused.
    Saturated,
    /// Work failed.
    Failing,
    /// The kernel or the host has no such figure.
    Unknown,
}

impl Verdict {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::High => "high",
            Verdict::Saturated => "saturated",
            Verdict::Failing => "errors",
            Verdict::Unknown => "unknown",
        }
    }
}

/// One aspect of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The kind of resource.
    pub resource: &'static str,
    /// Which one: the worst of its kind. Empty if there is one only.
    pub item: String,
    /// What the row is about.
    pub aspect: Aspect,
    /// The figure.
    pub value: Option<f64>,
    /// Its unit, and what is counted.
    pub unit: &'static str,
    /// The threshold: a figure of this or more is not ok.
    pub threshold: f64,
    /// Where the threshold comes from.
    pub source: &'static str,
    /// The command or file that shows the figure.
    pub shown_by: &'static str,
    /// The judgement.
    pub verdict: Verdict,
}
