//! The golden messages, which no other L2TPv3 implementation could confirm, decoded by tshark.

use crate::capture::{self, Decoded, WRONG_DIGEST};
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};

/// The shared secret of the golden messages.
const SECRET: &str = "lantern";

/// Golden messages whose digest tshark cannot verify. It knows only one secret, and one digest of the first
/// message uses the next secret. It also always uses a secret, where RFC 3931 section 5.4.1 allows an integrity
/// check without one.
const UNCONFIRMED: &[&str] = &["v3-16-hello-two-digests", "v3-22-hello-integrity"];

/// No message is malformed, and tshark finds the fields that only version 3 has.
pub(crate) fn decode(bench: &Bench<'_>) -> Result<()> {
    let names =
        std::fs::read_to_string(bench.work.goldens().with_extension("names")).unwrap_or_default();
    let decoded =
        capture::decode(&bench.work.goldens(), Some(SECRET)).with_context(|| names.clone())?;

    let wrong = decoded.fields(WRONG_DIGEST, &["frame.number"])?;
    let wrong: Vec<&str> = wrong
        .iter()
        .flatten()
        .map(|number| name(&names, number))
        .collect();
    ensure!(
        wrong == UNCONFIRMED,
        "tshark computes another digest for {wrong:?}"
    );
    let digests = decoded.fields("l2tp.avp.message_digest", &["frame.number"])?;
    ensure!(
        digests.len() > UNCONFIRMED.len(),
        "tshark sees only {} digests",
        digests.len()
    );

    decoded.has_in_order(&[
        "SCCRQ", "SCCRP", "SCCCN", "ICRQ", "ICRP", "ICCN", "CDN", "StopCCN",
    ])?;
    connection_ids(&decoded)?;
    cookies(&decoded)
}

/// The first reply is addressed to the id that the preceding request assigned.
fn connection_ids(decoded: &Decoded) -> Result<()> {
    let of = |message: &str| format!("l2tp.version == 3 && l2tp.avp.message_type == {message}");
    let requests = decoded.fields(&of("1"), &["l2tp.avp.assigned_control_conn_id"])?;
    let replies = decoded.fields(&of("2"), &["l2tp.ccid"])?;
    let assigned: u32 = requests
        .first()
        .context("no version 3 SCCRQ")?
        .concat()
        .parse()?;
    let addressed = replies.first().context("no version 3 SCCRP")?.concat();
    ensure!(
        addressed == format!("{assigned:#010x}"),
        "SCCRP to {addressed}, SCCRQ assigned {assigned:#010x}"
    );
    Ok(())
}

/// Every data message carries the cookie that its receiver assigned to that session, of four octets or eight.
fn cookies(decoded: &Decoded) -> Result<()> {
    let assigned = decoded.fields(
        "l2tp.avp.assigned_cookie",
        &["l2tp.avp.local_session_id", "l2tp.avp.assigned_cookie"],
    )?;
    let carried = decoded.fields("l2tp.cookie", &["l2tp.sid", "l2tp.cookie"])?;
    let mut lengths: Vec<usize> = Vec::new();
    for row in &carried {
        let [session, cookie] = row.as_slice() else {
            anyhow::bail!("{row:?}")
        };
        let session = u32::from_str_radix(session.trim_start_matches("0x"), 16)?.to_string();
        ensure!(
            assigned.contains(&vec![session, cookie.clone()]),
            "{row:?} not in {assigned:?}"
        );
        lengths.push(cookie.len() / 2);
    }
    lengths.sort_unstable();
    ensure!(lengths == [4, 8], "cookies of {lengths:?} octets");
    Ok(())
}

/// The name of the golden message with this number; the list has one name per line.
fn name<'a>(names: &'a str, number: &str) -> &'a str {
    let prefix = format!("{number} ");
    names
        .lines()
        .find_map(|line| line.strip_prefix(&prefix))
        .unwrap_or("a message without a name")
}
