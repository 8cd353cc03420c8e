//! The long report: all statistics of a connection.

use super::sheet::{Layout, Sheet};
use super::{About, Elapsed, LocalTime, column_heads, hosts};
use crate::connection::Connection;
use crate::direction::Direction;
use crate::rtt::Times;
use core::fmt::{self, Write};

/// Optional parts of the long report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LongOptions {
    /// Round-trip times (`-r`).
    pub rtt: bool,
    /// Data in flight (`-W`).
    pub owin: bool,
}

/// Writes the long report (`-l`) of a connection, with its heading. The caller writes the rule between two reports.
///
/// # Errors
/// `out` cannot be written.
pub fn long(
    out: &mut dyn Write,
    connection: &Connection,
    about: &About<'_>,
    options: LongOptions,
) -> fmt::Result {
    writeln!(out, "TCP connection {}:", connection.number)?;
    hosts(out, about, connection.a_end(), connection.b_end())?;
    let complete = connection.is_complete();
    let state = match (connection.is_reset(), complete) {
        (true, _) => "RESET",
        (false, true) => "yes",
        (false, false) => "no",
    };
    write!(out, "\tcomplete conn: {state}")?;
    if !complete {
        let (syns, fins) = (connection.syns(), connection.fins());
        write!(out, "\t(SYNs: {syns})  (FINs: {fins})")?;
    }
    let zone = about.zone;
    let [first, last] =
        [connection.first_time, connection.last_time].map(|time| LocalTime { time, zone });
    writeln!(out, "\n\tfirst packet:  {first}")?;
    writeln!(out, "\tlast packet:   {last}")?;
    writeln!(
        out,
        "\telapsed time:  {}",
        Elapsed::between(connection.first_time, connection.last_time)
    )?;
    writeln!(out, "\ttotal packets: {}", connection.packets)?;
    writeln!(out, "\tfilename:      {}", about.file)?;
    column_heads(out, about.pair)?;
    let mut sheet = Sheet::new(out, Layout::Columns);
    statistics(&mut sheet, connection, about.end, options)
}

/// Writes the statistics in any layout.
pub(super) fn statistics(
    sheet: &mut Sheet<'_>,
    connection: &Connection,
    end: i64,
    options: LongOptions,
) -> fmt::Result {
    let both = [&connection.a, &connection.b];
    packets(sheet, both)?;
    handshake(sheet, both)?;
    sizes(sheet, both)?;
    if options.owin {
        owin(sheet, both, connection)?;
    }
    stream(sheet, both)?;
    timing(sheet, connection, end)?;
    if options.rtt {
        rtt(sheet, both)?;
        acknowledgements(sheet, both)?;
    }
    Ok(())
}

type Both<'a> = [&'a Direction; 2];

fn packets(sheet: &mut Sheet<'_>, both: Both<'_>) -> fmt::Result {
    sheet.counts("total packets", "", both.map(|d| d.packets))?;
    if both.iter().any(|d| d.resets > 0) || sheet.is_separated() {
        sheet.counts("resets sent", "", both.map(|d| d.resets))?;
    }
    sheet.counts("ack pkts sent", "", both.map(|d| d.ack_packets))?;
    sheet.counts("pure acks sent", "", both.map(|d| d.pure_acks))?;
    sheet.counts("sack pkts sent", "", both.map(|d| d.sack_packets))?;
    sheet.counts("dsack pkts sent", "", both.map(|d| d.dsack_packets))?;
    sheet.counts("max sack blks/ack", "", both.map(|d| d.sack_blocks_max))?;
    sheet.counts("unique bytes sent", "", both.map(|d| d.unique_bytes))?;
    sheet.counts("actual data pkts", "", both.map(|d| d.data_packets))?;
    sheet.counts("actual data bytes", "", both.map(|d| d.data_bytes))?;
    sheet.counts("rexmt data pkts", "", both.map(|d| d.retransmitted_packets))?;
    sheet.counts("rexmt data bytes", "", both.map(|d| d.retransmitted_bytes))?;
    sheet.counts("zwnd probe pkts", "", both.map(|d| d.probe_packets))?;
    sheet.counts("zwnd probe bytes", "", both.map(|d| d.probe_bytes))?;
    sheet.counts("outoforder pkts", "", both.map(|d| d.out_of_order_packets))?;
    sheet.counts("pushed data pkts", "", both.map(|d| d.pushed_packets))
}

fn handshake(sheet: &mut Sheet<'_>, both: Both<'_>) -> fmt::Result {
    let [a, b] = both;
    sheet.texts(
        "SYN/FIN pkts sent",
        "",
        [
            format_args!("{}/{}", a.syns, a.fins),
            format_args!("{}/{}", b.syns, b.fins),
        ],
    )?;
    let letter = |asked: bool| if asked { 'Y' } else { 'N' };
    let scale = a.asked_scale || b.asked_scale || sheet.is_separated();
    if scale || a.asked_timestamps || b.asked_timestamps {
        let [[a, at], [b, bt]] = both.map(|d| [d.asked_scale, d.asked_timestamps].map(letter));
        let pair = [format_args!("{a}/{at}"), format_args!("{b}/{bt}")];
        sheet.texts("req 1323 ws/ts", "", pair)?;
    }
    if scale {
        let agreed = a.asked_scale && b.asked_scale;
        let scales = both.map(|d| if agreed { d.scale } else { 0 });
        sheet.counts("adv wind scale", "", scales)?;
    }
    if a.asked_sack || b.asked_sack || sheet.is_separated() {
        let [a, b] = both.map(|d| letter(d.asked_sack));
        sheet.texts("req sack", "", [format_args!("{a}"), format_args!("{b}")])?;
        sheet.counts("sacks sent", "", both.map(|d| d.sacks_sent))?;
    }
    Ok(())
}

fn sizes(sheet: &mut Sheet<'_>, both: Both<'_>) -> fmt::Result {
    sheet.counts("urgent data pkts", "pkts", both.map(|d| d.urgent_packets))?;
    sheet.counts("urgent data bytes", "bytes", both.map(|d| d.urgent_bytes))?;
    sheet.counts("mss requested", "bytes", both.map(|d| d.mss))?;
    sheet.counts("max segm size", "bytes", both.map(|d| d.segment_max))?;
    sheet.counts("min segm size", "bytes", both.map(|d| d.segment_min))?;
    let average = both.map(|d| d.data_bytes.checked_div(d.data_packets).unwrap_or(0));
    sheet.counts("avg segm size", "bytes", average)?;
    sheet.counts("max win adv", "bytes", both.map(|d| d.windows.max))?;
    sheet.counts("min win adv", "bytes", both.map(|d| d.windows.min))?;
    sheet.counts("zero win adv", "times", both.map(|d| d.windows.zero))?;
    let average = both.map(|d| d.windows.total.checked_div(d.windows.count).unwrap_or(0));
    sheet.counts("avg win adv", "bytes", average)
}

fn owin(sheet: &mut Sheet<'_>, both: Both<'_>, connection: &Connection) -> fmt::Result {
    sheet.counts("max owin", "bytes", both.map(|d| d.owin.max))?;
    sheet.counts("min non-zero owin", "bytes", both.map(|d| d.owin.min))?;
    let average = both.map(|d| {
        let (total, count) = (d.owin.total, d.owin.count);
        total
            .saturating_add(count / 2)
            .checked_div(count)
            .unwrap_or(0)
    });
    sheet.counts("avg owin", "bytes", average)?;
    let elapsed = connection.elapsed();
    if elapsed <= 0 {
        return sheet.texts("wavg owin", "", [format_args!("NA"), format_args!("NA")]);
    }
    let elapsed = elapsed as u128;
    let weighted = both.map(|d| {
        let sum = d.owin.byte_nanoseconds_until(connection.last_time);
        ((sum + elapsed / 2) / elapsed) as u64
    });
    sheet.counts("wavg owin", "bytes", weighted)
}

fn stream(sheet: &mut Sheet<'_>, both: Both<'_>) -> fmt::Result {
    sheet.counts("initial window", "bytes", both.map(|d| d.initial_bytes))?;
    sheet.counts("initial window", "pkts", both.map(|d| d.initial_packets))?;
    let length = both.map(Direction::stream_length);
    sheet.known("ttl stream length", "bytes", length)?;
    sheet.known("missed data", "bytes", both.map(Direction::missed))?;
    sheet.counts("truncated data", "bytes", both.map(|d| d.truncated_bytes))?;
    let packets = both.map(|d| d.truncated_packets);
    sheet.counts("truncated packets", "pkts", packets)
}

fn timing(sheet: &mut Sheet<'_>, connection: &Connection, end: i64) -> fmt::Result {
    let both = [&connection.a, &connection.b];
    let lasted = both.map(|d| {
        let (first, last) = (d.first_data_time, d.last_data_time);
        let lasted = last.unwrap_or(0).saturating_sub(first.unwrap_or(0));
        lasted.max(0) as f64 / 1e9
    });
    sheet.decimals("data xmit time", "secs", lasted, 3)?;
    let (a, b) = connection.idle_max(end);
    sheet.idle("idletime max", [a, b])?;
    if both.iter().any(|d| d.hardware_duplicates > 0) || sheet.is_separated() {
        let counts = both.map(|d| d.hardware_duplicates);
        sheet.counts("hardware dups", "segs", counts)?;
        sheet.remark(
            "       ** WARNING: presence of hardware duplicates makes these figures suspect!\n",
        )?;
    }
    sheet.throughput(both.map(|d| d.unique_bytes), connection.elapsed())
}

fn rtt(sheet: &mut Sheet<'_>, both: Both<'_>) -> fmt::Result {
    sheet.remark("\n")?;
    sheet.counts("RTT samples", "", both.map(|d| d.rtt.count))?;
    spread(
        sheet,
        ["RTT min", "RTT max", "RTT avg", "RTT stdev"],
        both.map(|d| &d.rtt),
    )?;
    sheet.remark("\n")?;
    sheet.times("RTT from 3WHS", both.map(|d| d.rtt_handshake as f64))?;
    sheet.remark("\n")?;
    sheet.counts("RTT full_sz smpls", "", both.map(|d| d.rtt_full.count))?;
    spread(
        sheet,
        [
            "RTT full_sz min",
            "RTT full_sz max",
            "RTT full_sz avg",
            "RTT full_sz stdev",
        ],
        both.map(|d| &d.rtt_full),
    )?;
    sheet.remark("\n")
}

/// Bounds, mean and standard deviation of a set of times.
fn spread(sheet: &mut Sheet<'_>, labels: [&str; 4], times: [&Times; 2]) -> fmt::Result {
    sheet.times(labels[0], times.map(|times| times.min as f64))?;
    sheet.times(labels[1], times.map(|times| times.max as f64))?;
    sheet.times(labels[2], times.map(Times::mean))?;
    sheet.times(labels[3], times.map(Times::deviation))
}

fn acknowledgements(sheet: &mut Sheet<'_>, both: Both<'_>) -> fmt::Result {
    sheet.counts("post-loss acks", "", both.map(|d| d.post_loss_acks))?;
    let ambiguous = both.map(|d| d.rtt_ambiguous.count);
    if ambiguous != [0, 0] || sheet.is_separated() {
        sheet.remark(
            "\t  For the following 5 RTT statistics, only ACKs for\n\
             \t  multiply-transmitted segments (ambiguous ACKs) were\n\
             \t  considered.  Times are taken from the last instance\n\
             \t  of a segment.\n",
        )?;
        sheet.counts("ambiguous acks", "", ambiguous)?;
        spread(
            sheet,
            [
                "RTT min (last)",
                "RTT max (last)",
                "RTT avg (last)",
                "RTT sdv (last)",
            ],
            both.map(|d| &d.rtt_ambiguous),
        )?;
    }
    sheet.counts("segs cum acked", "", both.map(|d| d.cumulative_acks))?;
    sheet.counts("duplicate acks", "", both.map(|d| d.duplicate_acks))?;
    sheet.counts("triple dupacks", "", both.map(|d| d.triple_duplicate_acks))?;
    sheet.counts("max # retrans", "", both.map(|d| d.retransmissions_max))?;
    spread(
        sheet,
        [
            "min retr time",
            "max retr time",
            "avg retr time",
            "sdv retr time",
        ],
        both.map(|d| &d.retransmission_times),
    )
}
