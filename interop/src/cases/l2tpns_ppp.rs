//! Sessions that we open as a client; l2tpns terminates PPP.

use super::SOON;
use crate::freeradius::{FreeRadius, Replies, SECRET};
use crate::headend::Headend;
use crate::l2tpns::L2tpns;
use crate::net::LNS;
use crate::runner::Bench;
use crate::subscribers::{BEYOND, address, client_settings, move_in, ping_answered};
use anyhow::{Result, ensure};

const USERS: &str = "user1 Cleartext-Password := \"sesame\"\nuser2 Cleartext-Password := \"sesame\"\n\
                     user3 Cleartext-Password := \"another\"\n";

/// By CHAP.
pub(crate) fn by_chap(bench: &Bench<'_>) -> Result<()> {
    goes_on_line(bench, "chap")
}

/// By PAP.
pub(crate) fn by_pap(bench: &Bench<'_>) -> Result<()> {
    goes_on_line(bench, "pap")
}

/// Two get addresses and replies through the tunnel, a third has the wrong password; both sides report it.
fn goes_on_line(bench: &Bench<'_>, way: &str) -> Result<()> {
    let inside = &bench.wire.lns;
    // l2tpns adds no Message-Authenticator to its requests.
    let server = FreeRadius::start(inside, &bench.directory, USERS, Replies::Bare)?;
    let settings = format!("set radius_secret \"{SECRET}\"\nset radius_authtypes \"{way}\"\n");
    let mut peer = L2tpns::start_with(inside, &bench.directory, LNS, "lantern", &settings)?;
    inside.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let lac = Headend::lac(bench, &client_settings())?;
    let tunnel = lac.dial_tunnel()?;
    for _ in 0..3 {
        lac.dial(&tunnel, 1)?;
    }
    let rows = lac.all_on_line(2)?;
    for row in &rows {
        ensure!(row["role"] == "client", "{row}");
        let home = address(row)?;
        ensure!(home.starts_with("10.66.0."), "{row}");
        move_in(&bench.wire.lac, &home)?;
        ping_answered(&bench.wire.lac, BEYOND, &["-c", "3", "-I", &home])?;
        let sessions = peer.ask("show session")?;
        ensure!(sessions.contains(&home), "{home} is not in {sessions}");
    }
    let refused = lac.gone("user3")?;
    ensure!(refused["up_s"].is_null(), "{refused}");
    peer.process
        .wait_for("Authentication rejected for user3", SOON)?;
    let printed = server.process.printed();
    ensure!(
        printed.contains("Sent Access-Reject"),
        "freeradius rejected nobody"
    );
    lac.verb(&["tunnel", "delete", &tunnel])?;
    peer.process.wait_for("Received StopCCN", SOON)?;
    lac.stop()
}
