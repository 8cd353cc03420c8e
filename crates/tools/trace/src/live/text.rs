//! The report of an interval as text.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use super::ticker::{Report, Slow};
use crate::owners::Owner;

/// The report.
pub(super) fn page(report: &Report) -> String {
    let mut out = String::new();
    // Formatting into a String cannot fail.
    let _ = try_page(report, &mut out);
    out
}

fn try_page(report: &Report, out: &mut String) -> std::fmt::Result {
    let seconds = (report.until - report.from) as f64 / 1e9;
    writeln!(
        out,
        "{}: {seconds:.1} s, {} frames, {} dropped ({} in all), {} connections with packets or data in flight",
        report.interface, report.captured, report.dropped, report.dropped_total, report.connections
    )?;
    writeln!(
        out,
        "{:<24} {:<24} {:>12}  {:<16} {:>5}  PROCESS",
        "SENDER", "RECEIVER", "RATE", "CAUSE", "SHARE"
    )?;
    if report.dropped > 0 {
        writeln!(
            out,
            "frames are missing, so causes may be wrong: see --ring and --snaplen"
        )?;
    }
    for slow in &report.worst {
        row(slow, out)?;
    }
    if report.worst.is_empty() {
        writeln!(out, "no connection sent data")?;
    }
    Ok(())
}

fn row(slow: &Slow, out: &mut String) -> std::fmt::Result {
    let interval = &slow.interval;
    let ends = [(slow.a, &slow.a_owner), (slow.b, &slow.b_owner)];
    let [(sender, sends), (receiver, receives)] = match interval.from_a {
        true => ends,
        false => [ends[1], ends[0]],
    };
    writeln!(
        out,
        "{:<24} {:<24} {:>12}  {:<16} {:>3.0} %  {}",
        end(sender),
        end(receiver),
        rate(interval.bits_per_second()),
        interval.cause.rule().name,
        interval.part() * 100.0,
        process(sends.as_ref(), receives.as_ref())
    )?;
    writeln!(out, "    {interval}")
}

/// The sender's process; the receiver's if only that is of this host.
fn process(sender: Option<&Owner>, receiver: Option<&Owner>) -> String {
    match (sender, receiver) {
        (Some(sender), _) => sender.words(),
        (None, Some(receiver)) => format!("to {}", receiver.words()),
        (None, None) => "-".to_owned(),
    }
}

fn end((address, port): (IpAddr, u16)) -> String {
    SocketAddr::new(address, port).to_string()
}

fn rate(bits: f64) -> String {
    let (value, unit) = match bits {
        1e9.. => (bits / 1e9, "Gbit/s"),
        1e6.. => (bits / 1e6, "Mbit/s"),
        _ => (bits / 1e3, "kbit/s"),
    };
    format!("{value:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::super::ticker::tests::{report, slow};
    use super::*;

    #[test]
    fn a_row_has_the_sender_its_process_and_a_sentence() {
        let page = page(&report(vec![slow(5_000, 870, 1_250_000)]));
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[0],
            "eth0: 5.0 s, 1234 frames, 5 dropped (7 in all), 30 connections with packets or data in flight"
        );
        let words: Vec<&str> = lines[3].split_whitespace().collect();
        let expected = "[2001:db8::1]:443 192.0.2.1:5000 10.00 Mbit/s queue 87 % 42/server";
        assert_eq!(words.join(" "), expected);
        assert_eq!(
            lines[4],
            "    87 % of 1.0 s was limited by a queue in the network"
        );
    }

    #[test]
    fn a_process_that_may_not_be_read_is_its_user() {
        let mut slow = slow(5_000, 870, 1_250_000);
        slow.b_owner = None;
        assert!(page(&report(vec![slow])).contains(" 87 %  to uid 1000\n"));
        assert_eq!(process(None, None), "-");
        assert!(page(&report(Vec::new())).contains("no connection sent data"));
    }
}
