//! Shared code of the BGP tests: our speaker's settings, and what it shows.

use crate::bgp::{OUR_ASN, THEIR_ASN};
use crate::headend::Headend;
use crate::process::until;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// How long daemons that wait for each other may take to establish a session and exchange routes.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The settings of a speaker with one peer and networks to announce. `speaker` has additional keys of the
/// speaker, `peer` of the peer; `sections` has additional sections.
pub(crate) fn settings(speaker: &str, peer: &str, sections: &str) -> String {
    let marks = "add_community = [\"65010:1\", \"65010:2\"]\nadd_ext_community = \"RT:65010:3\"\n\
                 add_large_community = \"65010:4:5\"\nset_med = 66\nprepend = 2\n";
    format!(
        "[log]\nlevel = \"debug\"\n[bgp]\nasn = {OUR_ASN}\nrouter_id = \"10.9.0.2\"\nlisten = [\"10.9.0.2:179\"]\n\
         networks = [\"203.0.113.0/24\", \"192.0.2.0/25\", \"192.0.2.64/26\", \"2001:db8:2::/48\"]\nfamilies = [\"ipv4\", \"ipv6\"]\nhold_time_s = 3\n\
         connect_retry_s = 1\nimport = \"accept\"\nexport = \"own\"\n{speaker}\n\
         [[bgp.neighbor]]\naddress = \"10.9.0.1\"\nremote_asn = {THEIR_ASN}\n{peer}\n\
         [[bgp.policy]]\nname = \"own\"\n\
         [[bgp.policy.term]]\nneighbour = \"local\"\nfamily = \"ipv6\"\nset_next_hop = \"fd09::2\"\n{marks}then = \"accept\"\n\
         [[bgp.policy.term]]\nneighbour = \"local\"\n{marks}then = \"accept\"\n\
         [[bgp.policy.term]]\nfamily = \"ipv6\"\nset_next_hop = \"fd09::2\"\nthen = \"accept\"\n\
         [[bgp.policy.term]]\nthen = \"accept\"\n{sections}\n"
    )
}

impl Headend {
    /// Everything shown about a peer.
    ///
    /// # Errors
    /// The peer is unknown.
    pub(crate) fn neighbor(&self, address: &str) -> Result<Value> {
        let mut rows = self.show(&["bgp", "neighbors", address])?;
        ensure!(rows.len() == 1, "{address}: {rows:?}");
        Ok(rows.remove(0))
    }

    /// Waits until a peer's state satisfies `is_so`, and returns everything shown about it.
    ///
    /// # Errors
    /// It never does; the error holds the last state.
    pub(crate) fn neighbor_is(
        &self,
        address: &str,
        limit: Duration,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = Value::Null;
        let found = until(limit, || {
            last = self.neighbor(address)?;
            Ok(is_so(&last).then(|| last.clone()))
        })?;
        found.with_context(|| format!("the peer is like this: {last}"))
    }

    /// Waits until a session is Established, and returns everything shown about the peer.
    ///
    /// # Errors
    /// It is not established in time.
    pub(crate) fn established(&self, address: &str) -> Result<Value> {
        self.neighbor_is(address, SOON, |row| row["state"] == "Established")
    }

    /// Waits until there are exactly `count` routes to a prefix, and returns them, best first.
    ///
    /// # Errors
    /// There are more or fewer.
    pub(crate) fn paths(&self, prefix: &str, count: usize) -> Result<Vec<Value>> {
        let mut last = Vec::new();
        let found = until(SOON, || {
            last = self.routes_to(prefix)?;
            Ok((last.len() == count).then(|| last.clone()))
        })?;
        found.with_context(|| format!("the routes to {prefix} are {last:?}"))
    }

    /// The routes to a prefix; none is not an error, although the exit status reports it.
    pub(crate) fn routes_to(&self, prefix: &str) -> Result<Vec<Value>> {
        match self.show(&["bgp", "route", prefix]) {
            Err(error) if format!("{error:#}").contains("there is no route of") => Ok(Vec::new()),
            shown => shown,
        }
    }

    /// Waits until an event of a peer is shown, and returns it.
    ///
    /// # Errors
    /// It has not occurred; the error lists the events that have.
    pub(crate) fn happened(&self, address: &str, kind: &str, text: &str) -> Result<String> {
        let mut last = Vec::new();
        let found = until(SOON, || {
            last = self.show(&["bgp", "events", address])?;
            let mut those = last.iter().filter(|row| row["kind"] == kind);
            let what =
                those.find_map(|row| row["what"].as_str().filter(|what| what.contains(text)));
            Ok(what.map(str::to_owned))
        })?;
        found.with_context(|| format!("no {kind} with {text:?} among {last:?}"))
    }
}

/// Checks that a peer's output contains every one of `words`.
///
/// # Errors
/// One is missing.
pub(crate) fn has_all(printed: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(printed.contains(word), "no {word:?} in {printed}");
    }
    Ok(())
}
