//! The golden messages, which no foreign L2TPv3 peer can confirm, before tshark's decoder.

use crate::capture;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};

/// No message is malformed, and the fields that only version 3 has are where tshark looks for them.
pub(crate) fn decode(bench: &Bench<'_>) -> Result<()> {
    let file = bench.work.goldens();
    if !file.is_file() {
        let why = std::fs::read_to_string(file.with_extension("err")).unwrap_or_default();
        anyhow::bail!("the golden messages were not written: {why}");
    }
    let decoded = capture::decode(&file)?;
    decoded.has_in_order(&["SCCRQ", "SCCRP", "SCCCN", "ICRQ", "ICRP", "ICCN"])?;
    let requests = decoded.fields(
        "l2tp.version == 3 && l2tp.avp.message_type == 1",
        &["l2tp.avp.message_digest"],
    )?;
    let request = requests.first().context("no version 3 SCCRQ")?;
    ensure!(
        request.iter().all(|value| !value.is_empty()),
        "tshark sees no digest: {request:?}"
    );
    Ok(())
}
