//! The report as text: one sentence, then each direction, the clocks, and what was rewritten.

use std::fmt::{self, Write as _};

use paths::{Change, Counted, Delay, Field, Findings, MAPPINGS_MAX, OneWay, Point, Way};
use plot::number::grouped;

use super::Compared;
use super::kept::place;

/// Translated flows that the text lists.
const MAPPINGS: usize = 10;

pub(super) fn write(compared: &Compared<'_>, out: &mut String) {
    // Formatting into a String cannot fail.
    let _ = try_write(compared, out);
}

fn try_write(compared: &Compared<'_>, out: &mut String) -> fmt::Result {
    writeln!(out, "{}\n", sentence(compared))?;
    points(compared, out)?;
    if compared.same.is_some() {
        return writeln!(
            out,
            "Between a capture and its copy no packet is lost, and every delay is 0."
        );
    }
    for way in Way::ALL {
        direction(compared, way, out)?;
    }
    clocks(compared.found, out)?;
    rewritten(compared.found, out)?;
    only(compared, out)
}

/// The points nearer to the sender and to the receiver.
fn ends(way: Way) -> (Point, Point) {
    match way {
        Way::AToB => (Point::A, Point::B),
        Way::BToA => (Point::B, Point::A),
    }
}

fn count(count: u64) -> String {
    grouped(count as f64, 0)
}

/// `1 packet`, `2 packets`
pub(super) fn packets(number: u64) -> String {
    match number {
        1 => "1 packet".to_owned(),
        number => format!("{} packets", count(number)),
    }
}

/// The result in one sentence.
pub(super) fn sentence(compared: &Compared<'_>) -> String {
    let found = compared.found;
    if let Some(text) = one_point(compared) {
        return text;
    }
    let parts = Way::ALL.map(|way| {
        let (near, far) = ends(way);
        let own = &found.ways[way as usize];
        let sent = own.pairs + own.lost.packets;
        match (sent, own.lost.packets) {
            (0, _) => format!("no packet went from {} to {}", near.name(), far.name()),
            (sent, 0) => format!(
                "of {} from {} to {}, none was lost between them",
                packets(sent),
                near.name(),
                far.name()
            ),
            (sent, lost) => format!(
                "of {} from {} to {}, {} ({}) {} lost between them",
                packets(sent),
                near.name(),
                far.name(),
                count(lost),
                percent(lost, sent),
                if lost == 1 { "was" } else { "were" }
            ),
        }
    });
    let text = parts.join("; ") + ".";
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The sentence about captures that are copies or parts of one capture.
fn one_point(compared: &Compared<'_>) -> Option<String> {
    let times = |shift: i64| match shift {
        0 => "at the same times".to_owned(),
        shift => format!(
            "with times that are {} {}",
            time((shift as f64).abs()),
            if shift > 0 { "later" } else { "earlier" }
        ),
    };
    if let Some(shift) = compared.same {
        return Some(match shift {
            0 => "A and B are the same capture: the same packets at the same times.".to_owned(),
            shift => format!(
                "A and B are the same capture: B has the same packets {}.",
                times(shift)
            ),
        });
    }
    let found = compared.found;
    let shift = found.one_point().filter(|_| !compared.one_clock)?;
    let (whole, part, missing) = match (found.alone(Point::A), found.alone(Point::B)) {
        (0, 0) => {
            return Some(format!(
                "A and B have the same packets, B {}: they are copies of one capture.",
                times(shift)
            ));
        }
        (missing, 0) => (Point::A, Point::B, missing),
        (0, missing) => (Point::B, Point::A, missing),
        _ => return None,
    };
    // Seen from the part, the times of the whole are later by as much as the part's are earlier.
    let shift = match part {
        Point::B => shift,
        Point::A => shift.saturating_neg(),
    };
    let (whole, part) = (whole.name(), part.name());
    Some(format!(
        "{part} is a part of {whole}: {whole} has every packet of {part}, and {part} has them {}, without {} of {whole}.",
        times(shift),
        packets(missing)
    ))
}

fn percent(part: u64, of: u64) -> String {
    let share = part as f64 / of.max(1) as f64 * 100.0;
    match share {
        share if share < 0.01 => format!("{share:.4} %"),
        share => format!("{share:.2} %"),
    }
}

fn points(compared: &Compared<'_>, out: &mut String) -> fmt::Result {
    for point in [Point::A, Point::B] {
        let found = &compared.found.points[point as usize];
        let capture = &compared.captures[point as usize];
        let inside: Vec<&str> = capture
            .kinds
            .iter()
            .map(|kind| match kind.as_str() {
                "" => "plain",
                kind => kind,
            })
            .collect();
        writeln!(
            out,
            "{}: {}, {}, {} flows; encapsulation: {}",
            point.name(),
            capture.name,
            packets(found.packets),
            count(found.flows),
            inside.join(" | ")
        )?;
        if capture.cut > 0 {
            writeln!(
                out,
                "   not read: {} that the snap length cut off within the headers",
                packets(capture.cut)
            )?;
        }
    }
    if compared.found.is_way_assumed {
        writeln!(
            out,
            "   Packets of one direction only, and no hop between A and B: that they went from A to B is taken from the clocks."
        )?;
    }
    out.push('\n');
    Ok(())
}

fn direction(compared: &Compared<'_>, way: Way, out: &mut String) -> fmt::Result {
    let found = &compared.found.ways[way as usize];
    if found.pairs == 0 {
        return Ok(());
    }
    let (near, far) = ends(way);
    let (near, far) = (near.name(), far.name());
    write!(out, "{near} to {far}: {} flows", count(found.flows))?;
    if let Some((a, b, _)) = found.main {
        match a == b {
            true => write!(out, ", the largest {a}")?,
            false => write!(out, ", the largest {a} (at B: {b})")?,
        }
    }
    out.push('\n');
    let parts = match found.parts {
        0 => String::new(),
        parts => format!(
            ", {} of them parts of segments that were cut or joined",
            count(parts)
        ),
    };
    writeln!(
        out,
        "  matched             {}, {} bytes{parts}",
        packets(found.pairs),
        count(found.bytes)
    )?;
    lost(compared, way, out)?;
    others(found, (near, far), out)?;
    if found.copies > 0 {
        writeln!(
            out,
            "  captured twice      {} at {near}",
            packets(found.copies)
        )?;
    }
    delay(compared.found, way, out)?;
    out.push('\n');
    Ok(())
}

/// What else is known of the direction's packets.
fn others(found: &OneWay, (near, far): (&str, &str), out: &mut String) -> fmt::Result {
    let losses = [
        (
            format!("lost before {near}"),
            &found.lost_before,
            format!("retransmissions of data that {near} had not seen"),
        ),
        (
            format!("late before {near}"),
            &found.late_before,
            "not sent again: reordered".to_owned(),
        ),
        (
            format!("lost after {far}"),
            &found.lost_after,
            format!("retransmissions of data that {far} had seen and no ACK covered"),
        ),
        (
            "sent without need".to_owned(),
            &found.needless,
            "an ACK or D-SACK shows that the data had arrived".to_owned(),
        ),
        (
            "reordered".to_owned(),
            &found.reordered,
            "arrived after a packet that was sent later".to_owned(),
        ),
        (
            "duplicated".to_owned(),
            &found.duplicated,
            format!("twice at {far}, once at {near}"),
        ),
        (
            format!("only at {far}"),
            &found.extra,
            format!("the capture at {near} missed them, or they began between the points"),
        ),
    ];
    for (name, counted, why) in losses {
        line(&name, counted, &why, far, out)?;
    }
    Ok(())
}

fn line(name: &str, counted: &Counted, why: &str, far: &str, out: &mut String) -> fmt::Result {
    if counted.packets == 0 {
        return Ok(());
    }
    let at_near = name.starts_with("lost before") || name.starts_with("late before");
    let point = match (at_near, far) {
        (true, "A") | (false, "B") => "B",
        _ => "A",
    };
    writeln!(
        out,
        "  {name:<19} {}, {} bytes, the first is {point} {} ({why})",
        packets(counted.packets),
        count(counted.bytes),
        counted.first
    )
}

fn lost(compared: &Compared<'_>, way: Way, out: &mut String) -> fmt::Result {
    let found: &OneWay = &compared.found.ways[way as usize];
    let (near, far) = ends(way);
    let lost = found.lost;
    let name = format!("lost {} to {}", near.name(), far.name());
    if lost.packets == 0 {
        return writeln!(out, "  {name:<19} none");
    }
    let in_part = match found.lost_in_part {
        0 => String::new(),
        parts => format!(", {} of them in part", count(parts)),
    };
    writeln!(
        out,
        "  {name:<19} {} ({}), {} bytes{in_part}",
        packets(lost.packets),
        percent(lost.packets, lost.packets + found.pairs),
        count(lost.bytes)
    )?;
    let listed = &compared.kept.listed[way as usize];
    let numbers: Vec<String> = listed.iter().map(|lost| lost.number.to_string()).collect();
    let more = match lost.packets > listed.len() as u64 {
        true => "; --json lists all",
        false => "",
    };
    writeln!(
        out,
        "  {:<19} packets of {}: {}{more}",
        "",
        near.name(),
        numbers.join(", ")
    )
}

/// The value to one decimal, without the sign of a value that is rounded to 0.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0 + 0.0
}

/// A time in the unit that fits.
pub(super) fn time(ns: f64) -> String {
    match ns.abs() {
        size if size < 1e6 => format!("{:.1} us", tenths(ns / 1e3)),
        size if size < 1e9 => format!("{:.3} ms", ns / 1e6),
        size if size < 86_400e9 => format!("{:.6} s", ns / 1e9),
        _ => format!("{:.6} days", ns / 86_400e9),
    }
}

/// What is known of the least delay.
pub(super) fn least(found: &Findings, delay: &Delay) -> String {
    match (found.clock.is_one, delay.least.1) {
        (true, _) => format!("least {} (one clock)", time(delay.least.0)),
        (false, Some(_)) if found.clock.round_trip == Some(0.0) => {
            "none: the times of all packets differ by the same".to_owned()
        }
        (false, Some(bound)) => format!(
            "least between 0 and {}: of the sum of both directions, {}, the division is not known",
            time(bound),
            time(bound)
        ),
        (false, None) => "least not known: without packets of the other direction, clocks and delay cannot be separated".to_owned(),
    }
}

fn delay(found: &Findings, way: Way, out: &mut String) -> fmt::Result {
    let delay = &found.clock.delays[way as usize];
    if delay.count == 0 {
        return Ok(());
    }
    let [p10, p50, p90, p99, p999] = delay.ranks.map(time);
    writeln!(out, "  one-way delay       {}", least(found, delay))?;
    writeln!(
        out,
        "    above the least   10 %: {p10}, 50 %: {p50}, 90 %: {p90}, 99 %: {p99}, 99.9 %: {p999}, longest {}",
        time(delay.longest)
    )?;
    writeln!(
        out,
        "    variation         {} between consecutive packets, on average",
        time(delay.variation)
    )
}

fn clocks(found: &Findings, out: &mut String) -> fmt::Result {
    let clock = &found.clock;
    if clock.is_one {
        return writeln!(out, "Clocks: one\n");
    }
    for piece in &clock.pieces {
        let (low, high) = piece.drift_bounds;
        match (piece.offset, piece.error()) {
            ((Some(least), Some(most)), Some(error)) => writeln!(
                out,
                "Clocks: B is {} {} A at the first packet, at most {} off",
                time(((least + most) / 2.0).abs()),
                if least + most >= 0.0 {
                    "ahead of"
                } else {
                    "behind"
                },
                time(error)
            )?,
            ((_, Some(most)), _) => writeln!(out, "Clocks: B less A is at most {}", time(most))?,
            ((Some(least), _), _) => writeln!(out, "Clocks: B less A is at least {}", time(least))?,
            _ => {}
        }
        let known = match piece.error() {
            Some(_) => format!(
                "between {:.1} and {:.1}",
                tenths(low * 1e6),
                tenths(high * 1e6)
            ),
            None => "estimated from one direction".to_owned(),
        };
        writeln!(
            out,
            "        B runs {:+.1} ppm against A ({known})",
            tenths(piece.drift * 1e6)
        )?;
    }
    for step in &clock.steps {
        writeln!(
            out,
            "        a clock was stepped: B less A grew by {} (at most {} off) between {:.3} s and {:.3} s after the first packet of A",
            time(step.by),
            time(step.error),
            seconds_after(found, step.time.0),
            seconds_after(found, step.time.1)
        )?;
    }
    if clock.left_out > 0 {
        writeln!(
            out,
            "        {} around the steps count for no delay",
            packets(clock.left_out)
        )?;
    }
    out.push('\n');
    Ok(())
}

fn seconds_after(found: &Findings, time: i64) -> f64 {
    let first = found.points[0].time.map_or(0, |time| time.0);
    time.saturating_sub(first) as f64 / 1e9
}

/// A change in words.
pub(super) fn change(change: &Change) -> String {
    let value = |value: u32| match (change.field, value) {
        (Field::Mss, 0) | (Field::WindowScale, 255) => "none".to_owned(),
        (Field::SackPermitted | Field::Timestamps, 0) => "no".to_owned(),
        (Field::SackPermitted | Field::Timestamps, _) => "yes".to_owned(),
        (Field::Ecn, 0) => "Not-ECT".to_owned(),
        (Field::Ecn, 1) => "ECT(1)".to_owned(),
        (Field::Ecn, 2) => "ECT(0)".to_owned(),
        (Field::Ecn, _) => "CE".to_owned(),
        (_, value) => value.to_string(),
    };
    let name = match change.field {
        Field::Hops => return format!("{} hops (TTL)", change.to),
        Field::Dscp => "DSCP",
        Field::Ecn => "ECN",
        Field::EcnSetup => "ECN flags of the SYN",
        Field::Mss => "MSS",
        Field::WindowScale => "window scale",
        Field::SackPermitted => "SACK permitted",
        Field::Timestamps => "time stamps option",
    };
    format!("{name} {} to {}", value(change.from), value(change.to))
}

fn rewritten(found: &Findings, out: &mut String) -> fmt::Result {
    let changes = &found.rewrites.changes;
    if changes.is_empty() && found.mapped == 0 {
        return writeln!(out, "Rewritten: nothing\n");
    }
    out.push_str("Rewritten\n");
    for (kind, changed) in changes {
        let (near, far) = ends(kind.way);
        writeln!(
            out,
            "  {} to {}: {} in {}, the first is {} = {}",
            near.name(),
            far.name(),
            change(kind),
            packets(changed.packets),
            place(Point::A, changed.first.0),
            place(Point::B, changed.first.1)
        )?;
    }
    for mapping in found.mappings.iter().take(MAPPINGS) {
        let moved = match mapping.moved {
            0 => String::new(),
            moved => format!(", sequence numbers moved by {moved}"),
        };
        match mapping.a == mapping.b {
            true => writeln!(out, "  {}{moved}", mapping.a)?,
            false => writeln!(out, "  {} is {} at B{moved}", mapping.a, mapping.b)?,
        }
    }
    let listed = found.mappings.len().min(MAPPINGS) as u64;
    if found.mapped > listed {
        writeln!(
            out,
            "  {} more flows are translated; --json lists {MAPPINGS_MAX}",
            count(found.mapped - listed)
        )?;
    }
    if found.stamps_rewritten > 0 {
        writeln!(
            out,
            "  time stamps rewritten in {} flows",
            count(found.stamps_rewritten)
        )?;
    }
    out.push('\n');
    Ok(())
}

fn only(compared: &Compared<'_>, out: &mut String) -> fmt::Result {
    for point in [Point::A, Point::B] {
        let found = &compared.found.points[point as usize];
        let name = point.name();
        if found.only_flows > 0 {
            let main = found.only_main.map_or(String::new(), |main| {
                format!("; the largest is {}, {}", main.0, packets(main.1))
            });
            writeln!(
                out,
                "Only at {name}: {} flows with {}{main}",
                count(found.only_flows),
                packets(found.only.packets)
            )?;
        }
        if found.at_edges > 0 {
            writeln!(
                out,
                "At the edges: {} of {name} may be outside of the time of the other capture, and count as neither matched nor lost",
                packets(found.at_edges)
            )?;
        }
        if found.given_up > 0 {
            writeln!(
                out,
                "Given up: {} of {name} left early, because too many packets waited",
                packets(found.given_up)
            )?;
        }
        if found.beyond > 0 {
            writeln!(
                out,
                "Not followed: {} of {name} belong to flows beyond the limit of flows",
                packets(found.beyond)
            )?;
        }
    }
    writeln!(
        out,
        "A packet counts as lost if its counterpart does not follow within {} s (--wait).",
        compared.wait as f64 / 1e9
    )
}
