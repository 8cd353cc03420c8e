//! Queries tc for all queues and filters of an interface.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::model::has_flow_classes;
use super::record::{self, Record, What};
use crate::system;

/// Parents whose filters tc is queried for.
const PARENTS_MAX: usize = 1_024;

/// Every qdisc and class of `interface`.
///
/// # Errors
/// The interface does not exist, tc is not installed, or tc failed.
pub(super) fn queues(interface: &str) -> Result<Vec<Record>> {
    if system::interface(interface).is_none() {
        bail!("{interface}: there is no such interface");
    }
    let mut records = tc(&["qdisc", "show", "dev", interface], None)?;
    records.extend(tc(&["class", "show", "dev", interface], None)?);
    Ok(records)
}

/// Every filter attached to `queues`, the queues of `interface`.
///
/// # Errors
/// As for [`queues`].
pub(super) fn filters(interface: &str, queues: &[Record]) -> Result<Vec<Record>> {
    filters_at(interface, parents(queues))
}

/// The filters attached to `parents`.
///
/// # Errors
/// As for [`queues`].
pub(super) fn filters_at(
    interface: &str,
    parents: impl IntoIterator<Item = String>,
) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for parent in parents {
        let mut words = vec!["filter", "show", "dev", interface];
        if parent.contains(':') {
            words.push("parent");
        }
        words.push(&parent);
        records.extend(tc(&words, Some(&parent))?);
    }
    Ok(records)
}

/// Where filters can be attached: disciplines, inner classes, and both sides of clsact.
fn parents(records: &[Record]) -> Vec<String> {
    let mut parents: Vec<String> = Vec::new();
    let mut add = |parent: &str| {
        if parents.len() < PARENTS_MAX && !parents.iter().any(|known| known == parent) {
            parents.push(parent.to_owned());
        }
    };
    for record in records {
        match (record.what, record.kind.as_str()) {
            (What::Qdisc, "ingress") => add("ingress"),
            (What::Qdisc, "clsact") => {
                add("ingress");
                add("egress");
            }
            (What::Qdisc, _) if record.handle != "0:" => {
                let major = record.handle.trim_end_matches(':');
                let has_classes = records.iter().any(|other| {
                    other.what == What::Class && other.handle.split(':').next() == Some(major)
                });
                // A discipline can have filters before it has a flow, when tc lists no class for it.
                if has_classes || has_flow_classes(&record.kind) {
                    add(&record.handle);
                }
            }
            (What::Class, _) => {
                if let Some(parent) = record.parent.as_deref()
                    && !parent.ends_with(':')
                {
                    add(parent);
                }
            }
            _ => {}
        }
    }
    parents
}

fn tc(words: &[&str], parent: Option<&str>) -> Result<Vec<Record>> {
    let json = printed(&["-j", "-s"], words)?;
    // The JSON of iproute2 6.1 lacks the rate of a police action.
    let lacks_rate = json.contains("\"police\"") && !json.contains("\"rate\":");
    let text = match lacks_rate {
        true => printed(&["-s"], words)?,
        false => json,
    };
    Ok(record::read(&text, parent))
}

fn printed(options: &[&str], words: &[&str]) -> Result<String> {
    let output = Command::new("tc")
        .args(options)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .context("tc: cannot be run; it is part of iproute2")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().next().unwrap_or("failed").trim().to_owned();
        bail!("tc {}: {line}", words.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
