//! The report as text: one sentence, then the path, the error of the twin as it was, and the promise.

use std::fmt::Write;

use twin::path::{Estimate, Loss};
use twin::{Figures, Twin};

use super::collect::PACKETS_MAX;
use super::{Promise, Report, Side};

/// The whole report.
pub(super) fn report(report: &Report) -> String {
    let mut out = String::new();
    let sentence = sentence(report);
    let _ = writeln!(out, "{sentence}");
    if report.beyond > 0 {
        let _ = writeln!(
            out,
            "Only the first {PACKETS_MAX} packets of 20,000 connections are used; {} packets are not.",
            report.beyond
        );
    }
    for side in &report.sides {
        let _ = writeln!(out, "\n{}", title(side));
        match &side.twin {
            Ok(twin) => path(&mut out, report, side, twin),
            Err(error) => {
                let _ = writeln!(out, "  no twin: {error}");
                if let Some(reason) = &side.reason {
                    let _ = writeln!(out, "  of the largest flow, {reason} (headend trace why)");
                }
            }
        }
    }
    out
}

fn title(side: &Side) -> String {
    let flows = side.found.len();
    let plural = if flows == 1 { "" } else { "s" };
    let most = side.found.iter().max_by_key(|found| found.flow.bytes());
    let ends = most.map_or_else(String::new, |found| {
        format!(", most data {} -> {}", found.from.0, found.to.0)
    });
    let name = if side.direction.is_up {
        "Upload"
    } else {
        "Download"
    };
    format!("{name}: {flows} flow{plural}{ends}")
}

/// The first line of the report.
pub(super) fn sentence(report: &Report) -> String {
    let sides = || report.sides.iter();
    let policy = report.policy.name();
    if let Some((twin, promise)) = sides().find_map(|side| {
        let promise = side.promise.as_ref()?;
        Some((side.twin.as_ref().ok()?, promise))
    }) {
        let (was, is) = (&twin.captured, &promise.figures);
        let change = match is.seconds / twin.figures.seconds - 1.0 {
            longer if longer >= 0.005 => format!("take {:.0} % longer", 100.0 * longer),
            shorter if shorter <= -0.005 => format!("take {:.0} % less time", -100.0 * shorter),
            _ => "take as long as before".into(),
        };
        return format!(
            "Under {policy}, the p99 of round trips falls from {} to {}, and the transfers {change}.",
            ms(was.rtt_ms[2]),
            ms(is.rtt_ms[2])
        )
        .replace("falls", if is.rtt_ms[2] > was.rtt_ms[2] { "rises" } else { "falls" });
    }
    if sides().any(|side| side.twin.is_ok()) {
        return format!(
            "No promise for {policy}: the twin as it was differs too much from the capture."
        );
    }
    match report.sides.is_empty() {
        true => "No twin: the capture has no TCP data.".into(),
        false => "No twin: this capture shows no bottleneck.".into(),
    }
}

fn path(out: &mut String, report: &Report, side: &Side, twin: &Twin) {
    let path = &twin.path;
    let mbit = |estimate: Estimate| interval(estimate, 1e6, "Mbit/s");
    let _ = writeln!(
        out,
        "  bottleneck     {}, from {} windows with a queue",
        mbit(path.rate_bps),
        path.windows
    );
    if let Some(base) = path.bases.iter().min_by(|a, b| a.value.total_cmp(&b.value)) {
        let _ = writeln!(out, "  base RTT       {}", interval(*base, 1e6, "ms"));
    }
    let _ = match path.buffer {
        Some(buffer) => writeln!(
            out,
            "  buffer         {}, {}",
            interval(buffer.bytes, 1e3, "kB"),
            interval(buffer.time, 1e6, "ms")
        ),
        None => writeln!(
            out,
            "  buffer         at least {:.0} kB: no loss shows its limit",
            path.most_queued / 1e3
        ),
    };
    let (lost, of) = path.losses;
    let kind = match path.loss {
        Loss::None => "none".to_owned(),
        Loss::DropTail => "at a full queue".to_owned(),
        Loss::Early(share) => format!("{:.2} % at any length of the queue", 100.0 * share),
        Loss::Policer(bucket) => format!("by a policer, bucket {:.0} kB", bucket / 1e3),
    };
    let _ = writeln!(out, "  losses         {lost} of {of} segments; {kind}");
    let _ = writeln!(out, "  cross traffic  {}", mbit(path.cross_bps));
    let remained = twin.evidence.remained.map_or_else(
        || "no loss shows its reduction".to_owned(),
        |(share, count)| format!("{share:.2} of the window remained after {count} losses"),
    );
    let _ = writeln!(
        out,
        "  congestion     {}; {remained}",
        twin.algorithm.name()
    );
    if side.found.iter().any(|found| found.is_behind) {
        let _ = writeln!(
            out,
            "  vantage        behind the bottleneck: round trips from time stamps"
        );
    }
    table(out, report, side.promise.as_ref(), twin);
}

fn table(out: &mut String, report: &Report, promise: Option<&Promise>, twin: &Twin) {
    let policy = report.policy.name();
    let under = promise.map(|promise| &promise.figures);
    let (was, again, error) = (&twin.captured, &twin.figures, &twin.error);
    let name = if under.is_some() { policy } else { "" };
    let _ = writeln!(
        out,
        "\n  {:<22}{:>12}{:>12}{:>9}{:>12}",
        "", "captured", "twin", "error", name
    );
    let mut row = |label: &str, of: &dyn Fn(&Figures) -> String, error: f64| {
        let under = under.map_or_else(String::new, of);
        let error = format!("{:+.0} %", 100.0 * error);
        let _ = writeln!(
            out,
            "  {label:<22}{:>12}{:>12}{error:>9}{under:>12}",
            of(was),
            of(again)
        );
    };
    row(
        "goodput, Mbit/s",
        &|f| format!("{:.2}", f.goodput_bps / 1e6),
        error.goodput,
    );
    for (at, label) in ["RTT p50, ms", "RTT p90, ms", "RTT p99, ms"]
        .into_iter()
        .enumerate()
    {
        row(
            label,
            &move |f: &Figures| format!("{:.1}", f.rtt_ms[at]),
            error.rtt[at],
        );
    }
    row("lost, %", &|f| format!("{:.2}", 100.0 * f.loss), error.loss);
    row(
        "all done after, s",
        &|f| format!("{:.1}", f.seconds),
        again.seconds / was.seconds - 1.0,
    );
    let _ = writeln!(
        out,
        "  worst flow: goodput {:+.0} %, completion {:+.0} %",
        100.0 * error.worst_goodput,
        100.0 * error.worst_seconds
    );
    if !error.is_small() {
        let _ = writeln!(
            out,
            "  no promise: goodput must be within {:.0} % and round trips within {:.0} % of the capture's",
            100.0 * twin::figures::GOODPUT_MAX,
            100.0 * twin::figures::RTT_MAX
        );
    }
}

fn interval(estimate: Estimate, unit: f64, name: &str) -> String {
    let Estimate { value, low, high } = estimate;
    format!(
        "{} {name} ({} to {})",
        number(value / unit),
        number(low / unit),
        number(high / unit)
    )
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        big if big >= 100.0 => format!("{value:.0}"),
        big if big >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn ms(value: f64) -> String {
    match value {
        long if long >= 1000.0 => format!("{:.1} s", long / 1000.0),
        short if short < 10.0 => format!("{short:.1} ms"),
        _ => format!("{value:.0} ms"),
    }
}
