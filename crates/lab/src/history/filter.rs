//! Chapter 5: the packet filter that opens a file for every packet.

use super::published::{self, FILTER_AFTER, FILTER_BEFORE, Spent};
use super::{Chapter, Claim, Ratio, Verdict};
use crate::report::{Cell, Table};
use plot::figure::{Axis, Bar, BarChart, BarGroup, COLOUR_OURS, Style};
use plot::number::grouped;

/// How a log line gets a protocol's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// No filter and no log. The floor.
    None,
    /// Looked up in the file for each packet, even if the log is off, as before the published fix.
    PerPacket,
    /// Looked up only if the log is on, and cached while packets have the same protocol, as after
    /// the fix.
    Cached,
    /// From a table read once with the rules, and compiled rules: ours.
    Table,
}

impl Names {
    /// In the order of the page.
    pub const ALL: [Names; 4] = [Names::None, Names::PerPacket, Names::Cached, Names::Table];

    /// As text.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Names::None => "no filter",
            Names::PerPacket => "looked up for each packet",
            Names::Cached => "looked up for a log line, and kept",
            Names::Table => "headend: a table read once",
        }
    }

    fn colour(self) -> usize {
        match self {
            Names::None => 7,
            Names::PerPacket => 0,
            Names::Cached => 1,
            Names::Table => COLOUR_OURS,
        }
    }
}

/// Costs of packets in one variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterRun {
    /// Where names come from.
    pub names: Names,
    /// Whether each packet is logged.
    pub log: bool,
    /// Nanoseconds of user time per packet.
    pub user_ns: f64,
    /// Nanoseconds of system time per packet.
    pub system_ns: f64,
    /// System calls per packet, including those that move it.
    pub calls: f64,
}

impl FilterRun {
    fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// Least fraction of a published saving that counts as reproduced; system calls cost differently on
/// another machine.
const PART_MIN: f64 = 0.7;

/// The chapter on names in log lines, from the costs of packets in each variant, and from the
/// nanoseconds of a function call and of a system call.
#[must_use]
pub fn chapter_filter(runs: &[FilterRun], call_ns: f64, system_call_ns: f64) -> Chapter {
    Chapter {
        title: "The packet filter that opens a file per packet".into(),
        source: published::FILTER_SOURCE.into(),
        account: account(),
        charts: vec![chart(runs).into()],
        tables: vec![table(runs), table_calls(call_ns, system_call_ns)],
        verdict: verdict(runs, call_ns, system_call_ns),
        old_builds: find(runs, Names::PerPacket, false)
            .map(|_| "name looked up".to_owned())
            .into_iter()
            .collect(),
        ratio: ratio(runs),
        method: method(),
    }
}

/// The time of a packet with a look-up, divided by the time of a packet through our filter.
fn ratio(runs: &[FilterRun]) -> Option<Ratio> {
    let of = |names| find(runs, names, false).map(FilterRun::cpu_ns);
    let ratio = of(Names::PerPacket)? / of(Names::Table)?;
    Ratio::new(
        "a filtered packet",
        ["name looked up", "name in a table"],
        Some(ratio),
    )
}

fn account() -> Vec<String> {
    let [before, after] = [FILTER_BEFORE, FILTER_AFTER];
    vec![
        "FreeBSD's ppp moves packets in user space, and passes each packet to its filter. The filter prepared the \
         protocol's name of each packet for a log line, although the log is off unless an operator looks for a \
         fault. For the name, getprotobynumber() opens /etc/protocols, reads it and closes it, for every packet."
            .into(),
        format!(
            "A fix looks the name up only if the log is on, and keeps it for further packets. The same transfer then \
             took {} s of user and {} s of system time instead of {} and {}, and {} instead of {} s in all. On that \
             machine, a function call took 1.2 ns and a system call 651 ns.",
            after.user_s, after.system_s, before.user_s, before.system_s, after.real_s, before.real_s
        ),
    ]
}

fn method() -> Vec<String> {
    vec![
        "Each packet is sent and received once over a pair of sockets, which stands for the tunnel and the TUN \
         device. That makes two system calls per packet, as in the published program. Between the two calls, a \
         filter of 20 rules judges the packet. User and system time are the kernel's account of the process."
            .into(),
        "The two old designs check the rules one after another. The look-up is our own: it opens /etc/protocols, \
         reads until it finds the protocol's line, and closes the file. The C library's look-up also asks for the \
         file's status. The benchmark counts system calls where it makes them."
            .into(),
        "With the log on, every packet causes one log line and one write to /dev/null. A name is kept as long as the \
         next packet has the same protocol. Of ten packets, seven are TCP, two are UDP and one is ICMP, in a random \
         order."
            .into(),
    ]
}

fn find(runs: &[FilterRun], names: Names, log: bool) -> Option<&FilterRun> {
    runs.iter().find(|run| run.names == names && run.log == log)
}

/// The fraction saved of system time and of total time.
fn saved(before: Option<&FilterRun>, after: Option<&FilterRun>) -> Option<[f64; 2]> {
    let (before, after) = (before?, after?);
    let part = |before: f64, after: f64| 1.0 - after / before.max(1e-9);
    Some([
        part(before.system_ns, after.system_ns),
        part(before.cpu_ns(), after.cpu_ns()),
    ])
}

fn published_saved() -> [f64; 2] {
    let part = |of: fn(&Spent) -> f64| 1.0 - of(&FILTER_AFTER) / of(&FILTER_BEFORE);
    [part(|s| s.system_s), part(|s| s.system_s + s.user_s)]
}

fn percent(part: f64) -> String {
    format!("{} %", grouped(part * 100.0, 0))
}

fn verdict(runs: &[FilterRun], call_ns: f64, system_call_ns: f64) -> Verdict {
    let off = |names| find(runs, names, false);
    let measured = saved(off(Names::PerPacket), off(Names::Cached));
    let claim = |index: usize, what: &str| {
        let published = published_saved()[index];
        let here = measured.map(|saved| saved[index]);
        Claim {
            holds: here.map(|here| here >= published * PART_MIN),
            because: match here {
                Some(here) => format!(
                    "With the log off, skipping the look-up saves {} of {what}; the published saving is {}.",
                    percent(here),
                    percent(published)
                ),
                None => format!(
                    "The saving of {what} without the look-up is not known: it was not measured."
                ),
            },
        }
    };
    let ratio = system_call_ns / call_ns.max(1e-9);
    let weight = Claim {
        holds: Some(ratio >= 50.0),
        because: format!(
            "A system call takes {} ns here and a function call {} ns; the ratio is {}. The published times are 651 \
             and 1.2 ns.",
            grouped(system_call_ns, 0),
            grouped(call_ns, 1),
            grouped(ratio, 0)
        ),
    };
    let claims = vec![
        claim(0, "system time"),
        claim(1, "user and system time"),
        weight,
    ];
    let mut verdict = Verdict::from_claims(claims);
    verdict.remarks.extend(our_own(runs));
    verdict
}

fn our_own(runs: &[FilterRun]) -> Vec<String> {
    let of = |names, log| find(runs, names, log);
    let mut remarks = Vec::new();
    if let (Some(floor), Some(old), Some(ours)) = (
        of(Names::None, false),
        of(Names::PerPacket, false),
        of(Names::Table, false),
    ) {
        remarks.push(format!(
            "headend's filter adds {} ns and no system call to a packet that takes {} ns without a filter. The filter \
             that looks up each packet's protocol adds {} ns and {} system calls.",
            grouped((ours.cpu_ns() - floor.cpu_ns()).max(0.0), 0),
            grouped(floor.cpu_ns(), 0),
            grouped(old.cpu_ns() - floor.cpu_ns(), 0),
            grouped(old.calls - floor.calls, 1)
        ));
    }
    if let (Some(old), Some(kept), Some(ours)) = (
        of(Names::PerPacket, true),
        of(Names::Cached, true),
        of(Names::Table, true),
    ) {
        remarks.push(format!(
            "With the log on and a look-up for each packet, a packet takes {} ns and {} system calls. If the filter \
             keeps the name until the protocol changes, a packet takes {} ns and {} system calls. With headend's \
             filter, a packet takes {} ns and {} system calls.",
            grouped(old.cpu_ns(), 0),
            grouped(old.calls, 1),
            grouped(kept.cpu_ns(), 0),
            grouped(kept.calls, 1),
            grouped(ours.cpu_ns(), 0),
            grouped(ours.calls, 1)
        ));
    }
    remarks
}

fn chart(runs: &[FilterRun]) -> BarChart {
    let whole = FILTER_BEFORE.user_s + FILTER_BEFORE.system_s;
    let published = [
        (Names::PerPacket, FILTER_BEFORE),
        (Names::Cached, FILTER_AFTER),
    ];
    let published = published.map(|(names, spent)| {
        let part = (spent.user_s + spent.system_s) / whole * 100.0;
        let text = format!("{} s user, {} s system", spent.user_s, spent.system_s);
        Bar::new(names.words(), Style::Dashed, names.colour(), part).labelled(text)
    });
    let mut groups = vec![BarGroup {
        name: "published: a transfer, log off".into(),
        bars: published.into(),
    }];
    for (log, name) in [
        (false, "here: a packet, log off"),
        (true, "here: a packet, log on"),
    ] {
        let Some(most) = find(runs, Names::PerPacket, log) else {
            continue;
        };
        let here = Names::ALL.into_iter().filter_map(|names| {
            let run = find(runs, names, log)?;
            let part = run.cpu_ns() / most.cpu_ns() * 100.0;
            let text = format!(
                "{} ns user, {} ns system",
                grouped(run.user_ns, 0),
                grouped(run.system_ns, 0)
            );
            Some(Bar::new(names.words(), Style::Solid, names.colour(), part).labelled(text))
        });
        groups.push(BarGroup {
            name: name.into(),
            bars: here.collect(),
        });
    }
    BarChart {
        title: "Processor time, with the look-up for each packet as 100 %".into(),
        subtitle: "Shorter is better.".into(),
        value: Axis::linear("of the time with a look-up for each packet", "%"),
        groups,
        notes: vec!["Dashed: published, for a whole program on a machine of 2004.".into()],
    }
}

fn table(runs: &[FilterRun]) -> Table {
    let mut table = Table::new(
        "A packet through a filter of 20 rules, by the source of the names in log lines",
        &[
            ("names", ""),
            ("log", ""),
            ("user", "ns"),
            ("system", "ns"),
            ("both", "ns"),
            ("system calls", ""),
        ],
    );
    for run in runs {
        let cells: [Cell; 6] = [
            run.names.words().into(),
            if run.log { "on" } else { "off" }.into(),
            Cell::num(run.user_ns, 0),
            Cell::num(run.system_ns, 0),
            Cell::num(run.cpu_ns(), 0),
            Cell::num(run.calls, 2),
        ];
        match run.names {
            Names::None => table.floor(cells),
            _ => table.row(cells),
        }
    }
    table
}

fn table_calls(call_ns: f64, system_call_ns: f64) -> Table {
    let mut table = Table::new(
        "Cost of a call",
        &[("call", ""), ("published", "ns"), ("here", "ns")],
    );
    table.row([
        "a function".into(),
        Cell::num(published::FILTER_CALL_NS, 1),
        Cell::num(call_ns, 1),
    ]);
    table.row([
        "the system".into(),
        Cell::num(published::FILTER_SYSTEM_CALL_NS, 0),
        Cell::num(system_call_ns, 0),
    ]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Outcome;

    fn run(names: Names, log: bool, user_ns: f64, system_ns: f64, calls: f64) -> FilterRun {
        FilterRun {
            names,
            log,
            user_ns,
            system_ns,
            calls,
        }
    }

    fn runs(look_up_ns: f64) -> Vec<FilterRun> {
        vec![
            run(Names::None, false, 100.0, 900.0, 2.0),
            run(Names::PerPacket, false, 300.0, 1_000.0 + look_up_ns, 5.0),
            run(Names::Cached, false, 200.0, 1_000.0, 2.0),
            run(Names::Table, false, 130.0, 900.0, 2.0),
        ]
    }

    #[test]
    fn a_look_up_that_costs_as_published_is_reproduced() {
        let chapter = chapter_filter(&runs(1_100.0), 1.0, 100.0);
        let why = chapter.verdict.why();
        assert_eq!(chapter.verdict.outcome, Outcome::Reproduced, "{why}");
        for words in [
            "saves 52 % of system time; the published saving is 51 %.",
            "saves 50 % of user and system time; the published saving is 38 %.",
            "adds 30 ns and no system call to a packet that takes 1,000 ns",
        ] {
            assert!(why.contains(words), "{words:?} is not in {why:?}");
        }
    }

    #[test]
    fn a_look_up_that_costs_nothing_is_not() {
        let chapter = chapter_filter(&runs(0.0), 1.0, 10.0);
        assert_eq!(chapter.verdict.outcome, Outcome::NotReproduced);
        let chapter = chapter_filter(&[], 1.0, 100.0);
        assert_eq!(chapter.verdict.outcome, Outcome::NotTested);
    }
}
