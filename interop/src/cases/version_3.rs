//! Our own LAC and LNS over L2TPv3, decoded by tshark, because no other implementation's control connection is
//! available.

use super::SOON;
use crate::capture::Capture;
use crate::headend::{Headend, secret_key};
use crate::runner::Bench;
use anyhow::{Result, ensure};

const SECRET: &str = "lantern";

/// tshark computes the same digests as we do, over a connection with a session from start to end.
pub(crate) fn decodes(bench: &Bench<'_>) -> Result<()> {
    let lns = Headend::lns(bench, &secret_key(Some(SECRET)))?;
    let lac = Headend::lac(bench, &secret_key(Some(SECRET)))?;
    let capture = Capture::start(&bench.wire.lns, &bench.directory)?;
    lac.verb(&["tunnel", "create", "--peer", "10.9.0.2", "--version", "3"])?;
    let tunnel = lac.wait_for("tunnels", "established", 1, SOON)?.remove(0);
    lac.verb(&["session", "create", "--tunnel", &tunnel["id"].to_string()])?;
    let ours = lac.wait_for("sessions", "established", 1, SOON)?.remove(0);
    let theirs = lns.wait_for("sessions", "established", 1, SOON)?.remove(0);
    ensure!(
        ours["remote_id"] == theirs["id"] && theirs["remote_id"] == ours["id"],
        "{ours} / {theirs}"
    );
    lac.verb(&["tunnel", "delete", &tunnel["id"].to_string()])?;
    lns.wait_for("tunnels", "established", 0, SOON)?;
    lac.stop()?;
    lns.stop()?;

    let decoded = capture.finish_with(SECRET)?;
    decoded.has_in_order(&["SCCRQ", "SCCRP", "SCCCN", "ICRQ", "ICRP", "ICCN", "StopCCN"])?;
    let control = decoded.fields(
        "l2tp.version == 3 && l2tp.type == 1",
        &["l2tp.avp.message_digest"],
    )?;
    ensure!(
        control.iter().flatten().all(|digest| !digest.is_empty()),
        "a control message without a digest"
    );
    Ok(())
}
