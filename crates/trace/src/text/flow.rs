//! Reports of UDP flows: brief and long.

use super::sheet::{Layout, Sheet};
use super::{About, Elapsed, LocalTime, Names, column_heads, hosts, name_of};
use crate::udp::Flow;
use core::fmt::{self, Write};

/// Writes the name of a flow in the brief report. [`flow_brief`] pads it to the width of the longest name.
///
/// # Errors
/// `out` cannot be written.
pub fn flow_name(out: &mut dyn Write, flow: &Flow, names: &dyn Names, pair: u64) -> fmt::Result {
    name_of(names, flow.a_end(), flow.b_end(), pair, out)
}

/// Writes the line of the brief report (`-u`). `name` is from [`flow_name`], and `width` is the width of the longest
/// name.
///
/// # Errors
/// `out` cannot be written.
pub fn flow_brief(out: &mut dyn Write, flow: &Flow, name: &str, width: usize) -> fmt::Result {
    writeln!(
        out,
        "{:3}: {name:<width$} {:4}> {:4}<",
        flow.number, flow.a.packets, flow.b.packets
    )
}

/// Writes the long report (`-l -u`) of a flow, with its heading. The caller writes the rule between two reports.
///
/// # Errors
/// `out` cannot be written.
pub fn flow_long(out: &mut dyn Write, flow: &Flow, about: &About<'_>) -> fmt::Result {
    writeln!(out, "UDP connection {}:", flow.number)?;
    hosts(out, about, flow.a_end(), flow.b_end())?;
    let zone = about.zone;
    let [first, last] = [flow.first_time, flow.last_time].map(|time| LocalTime { time, zone });
    writeln!(out, "\n\tfirst packet:  {first}")?;
    writeln!(out, "\tlast packet:   {last}")?;
    writeln!(
        out,
        "\telapsed time:  {}",
        Elapsed::between(flow.first_time, flow.last_time)
    )?;
    let both = [&flow.a, &flow.b];
    writeln!(out, "\ttotal packets: {}", flow.a.packets + flow.b.packets)?;
    writeln!(out, "\tfilename:      {}", about.file)?;
    column_heads(out, about.pair)?;
    let mut sheet = Sheet::new(out, Layout::Columns);
    sheet.counts("total packets", "", both.map(|d| d.packets))?;
    sheet.counts("data bytes sent", "", both.map(|d| d.bytes))?;
    sheet.throughput(both.map(|d| d.bytes), flow.elapsed())
}
