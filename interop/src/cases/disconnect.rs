//! radclient makes our LNS disconnect a subscriber (RFC 5176).

use super::SOON;
use crate::freeradius::{FreeRadius, Replies, SECRET, disconnect};
use crate::headend::Headend;
use crate::process::until;
use crate::runner::Bench;
use crate::subscribers::{client_settings, lns_settings, radius_settings};
use anyhow::{Context, Result, ensure};

const USERS: &str =
    "user1 Cleartext-Password := \"sesame\"\nuser2 Cleartext-Password := \"sesame\"\n";

/// One of two subscribers ends, and both ends and the server know the reason; invalid requests change nothing.
pub(crate) fn ends_one_of_two(bench: &Bench<'_>) -> Result<()> {
    let outside = &bench.wire.lns;
    let server = FreeRadius::start(outside, &bench.directory, USERS, Replies::Proven)?;
    let lns = Headend::lns(bench, &lns_settings("", "", &radius_settings()))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 1)?;
    lac.dial(&tunnel, 1)?;
    lns.all_on_line(2)?;

    let printed = disconnect(outside, "User-Name = \"nobody\"\n", SECRET)?;
    ensure!(printed.contains("Received Disconnect-NAK"), "{printed}");
    ensure!(
        printed.contains("Error-Cause = Session-Context-Not-Found"),
        "{printed}"
    );
    let printed = disconnect(outside, "User-Name = \"user1\"\n", "anothersecret")?;
    ensure!(printed.contains("No reply from server"), "{printed}");
    lns.all_on_line(2)?;

    let printed = disconnect(outside, "User-Name = \"user1\"\n", SECRET)?;
    ensure!(printed.contains("Received Disconnect-ACK"), "{printed}");
    let ended = lns.gone("user1")?;
    let reason = ended["reason"].as_str().unwrap_or_default();
    ensure!(reason.contains("Disconnect-Request"), "{ended}");
    let there = lac.gone("user1")?;
    let reason = there["reason"].as_str().unwrap_or_default();
    ensure!(reason.contains("the peer"), "{there}");

    let stop = until(SOON, || {
        let records = server.records();
        let stop = records
            .into_iter()
            .find(|one| one.user() == "user1" && one.status() == "Stop");
        Ok(stop)
    })?;
    let stop = stop.context("no record of the end")?;
    ensure!(
        stop.get("Acct-Terminate-Cause") == "Admin-Reset",
        "{stop:?}"
    );

    // The other one, selected by its accounting session id.
    let account = lns.show(&["subscriber", "user2"])?.remove(0)["account"].clone();
    let account = account.as_str().context("an account")?;
    let printed = disconnect(
        outside,
        &format!("Acct-Session-Id = \"{account}\"\n"),
        SECRET,
    )?;
    ensure!(printed.contains("Received Disconnect-ACK"), "{printed}");
    lns.gone("user2")?;
    lns.stop()
}
