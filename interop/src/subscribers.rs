//! An LNS of ours with subscribers, and a LAC of ours that is their client: `[ppp]` on one side of the wire,
//! `[client]` on the other, a TUN device on both.

use crate::headend::Headend;
use crate::net::Namespace;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// The LNS's own address.
pub(crate) const OWN: &str = "10.64.255.1";

/// A host beyond the LNS.
pub(crate) const BEYOND: &str = "10.99.0.1";

/// How long an action may take that idle daemons do at once.
const SOON: Duration = Duration::from_secs(15);

/// Configuration of an LNS: its own address, a pool, and the device `inside`. `ppp` has additional keys of its
/// `[ppp]`, `tun` of its `[tun]`, `sections` additional sections.
pub(crate) fn lns_settings(ppp: &str, tun: &str, sections: &str) -> String {
    format!(
        "[log]\nlevel = \"debug\"\n[ppp]\naddress = \"{OWN}\"\ndns = [\"9.9.9.9\"]\n{ppp}\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
         [tun]\nname = \"inside\"\n{tun}\n{sections}\n"
    )
}

/// Sections for an LNS that uses the freeradius in its namespace, stores waiting records, and accepts
/// Disconnect-Requests.
pub(crate) fn radius_settings() -> String {
    let secret = crate::freeradius::SECRET;
    format!(
        "[radius]\naccounting_store = \"accounting.redb\"\ndisconnect = \"127.0.0.1:3799\"\n\
         [[radius.server]]\nauthentication = \"127.0.0.1:1812\"\naccounting = \"127.0.0.1:1813\"\n\
         secret = \"{secret}\"\ntimeout_s = 0.5\n"
    )
}

/// Configuration of a LAC whose sessions are `user1`, `user2` and so on, with the device `outside` towards the
/// LNS.
pub(crate) fn client_settings() -> String {
    "[log]\nlevel = \"debug\"\n[client]\nname = \"user{n}\"\nsecret = \"sesame\"\n\
     [tun]\nname = \"outside\"\nroutes = [\"10.64.0.0/10\"]\n"
        .to_owned()
}

/// The text of a users file with `count` users, named as by the client.
pub(crate) fn users(count: usize) -> String {
    let user = |n| format!("[[user]]\nname = \"user{n}\"\npassword = \"sesame\"\n");
    (1..=count).map(user).collect()
}

/// Writes a file that only its owner may read, beside the configurations.
///
/// # Errors
/// It cannot be written.
pub(crate) fn private_file(bench: &Bench<'_>, name: &str, text: &str) -> Result<()> {
    let path = bench.directory.join(name);
    std::fs::write(&path, text)?;
    rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(0o600))?;
    Ok(())
}

impl Headend {
    /// Opens a tunnel to the LNS on the wire, and returns its id.
    ///
    /// # Errors
    /// The tunnel is not established.
    pub(crate) fn dial_tunnel(&self) -> Result<String> {
        self.verb(&["tunnel", "create", "--peer", "10.9.0.2", "--version", "2"])?;
        let tunnel = self.wait_for("tunnels", "established", 1, SOON)?.remove(0);
        Ok(tunnel["id"].to_string())
    }

    /// Opens that many sessions in a tunnel, one per subscriber; they may still be rejected.
    ///
    /// # Errors
    /// No session can be opened.
    pub(crate) fn dial(&self, tunnel: &str, count: usize) -> Result<()> {
        let count = count.to_string();
        let create = ["session", "create", "--tunnel", tunnel, "--count", &count];
        self.verb(&[&create[..], &["--no-wait"]].concat()).map(drop)
    }

    /// Waits until a subscriber is connected, and returns its row.
    ///
    /// # Errors
    /// It does not connect; the error holds the existing rows.
    pub(crate) fn on_line(&self, name: &str) -> Result<Value> {
        let mut rows = Vec::new();
        let found = until(SOON, || {
            rows = self.show(&["subscribers"])?;
            let mut is_up = rows
                .iter()
                .filter(|row| row["name"] == name && row["state"] == "up");
            Ok(is_up.next().cloned())
        })?;
        found.with_context(|| format!("{name} is not connected: {rows:?}"))
    }

    /// Waits until exactly that many subscribers are connected, and returns their rows.
    ///
    /// # Errors
    /// There are more or fewer.
    pub(crate) fn all_on_line(&self, count: usize) -> Result<Vec<Value>> {
        self.wait_for("subscribers", "up", count, SOON)
    }

    /// Waits until a subscriber is disconnected, and returns its history entry.
    ///
    /// # Errors
    /// It stays connected, or has no history entry.
    pub(crate) fn gone(&self, name: &str) -> Result<Value> {
        let found = until(SOON, || {
            let rows = self.show(&["subscribers", "--ended"])?;
            Ok(rows.into_iter().find(|row| row["name"] == name))
        })?;
        found.with_context(|| format!("{name} has not ended"))
    }

    /// The value of a counter.
    ///
    /// # Errors
    /// There is no counter of this name.
    pub(crate) fn counter(&self, name: &str) -> Result<u64> {
        let rows = self.show(&["counters"])?;
        let row = rows.iter().find(|row| row["name"] == name);
        row.and_then(|row| row["value"].as_u64())
            .with_context(|| format!("no counter {name}"))
    }
}

/// The address in a subscriber's row.
///
/// # Errors
/// There is none.
pub(crate) fn address(row: &Value) -> Result<String> {
    let address = row["address"].as_str().map(str::to_owned);
    address.with_context(|| format!("no address in {row}"))
}

/// Assigns a subscriber's address to its side of the wire, as a dial-in client would.
///
/// # Errors
/// The output of `ip`.
pub(crate) fn move_in(client: &Namespace, address: &str) -> Result<()> {
    client.ip(&[
        "address",
        "replace",
        &format!("{address}/32"),
        "dev",
        "outside",
    ])
}

/// Pings from `namespace`, and returns ping's output, whether there were replies or not.
///
/// # Errors
/// ping is not installed, or fails.
pub(crate) fn ping(namespace: &Namespace, to: &str, more: &[&str]) -> Result<String> {
    let output = namespace
        .command("ping")
        .args(["-n", "-i", "0.05", "-W", "1"])
        .args(more)
        .arg(to)
        .output()
        .context("ping")?;
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed += &String::from_utf8_lossy(&output.stderr);
    ensure!(printed.contains("packets transmitted"), "ping: {printed}");
    Ok(printed)
}

/// Pings, and requires every reply.
///
/// # Errors
/// A reply is missing.
pub(crate) fn ping_answered(namespace: &Namespace, to: &str, more: &[&str]) -> Result<()> {
    let printed = ping(namespace, to, more)?;
    ensure!(printed.contains(" 0% packet loss"), "{printed}");
    Ok(())
}
