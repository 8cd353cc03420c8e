//! The three measurements. Each gives a number, a chart and words, or the reason why it could not be taken.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use emulate::{Emulation, Results, Scenario};
use lab::gateway::engine::Engine;
use lab::gateway::rows::{self, Load, Row};
use lab::gateway::run::{Place, Plan};
use lab::gateway::stop::Stop;
use lab::gateway::treatment::{Link, Treatment};
use plot::number::grouped;
use plot::{Axis, Chart, Kind, Series};

/// Instants of the emulation between two looks at the clock.
const TURNS: usize = 256;
/// Seconds for which each kind of traffic is measured.
const TRAFFIC_S: u64 = 2;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    subscribers: u32,
    routers: u32,
    /// Seconds of virtual time at the home gateway.
    gateway_s: u64,
    traffic_s: u64,
}

impl Size {
    pub(crate) fn new(is_quick: bool) -> Self {
        match is_quick {
            false => Self {
                subscribers: 10_000,
                routers: 10_000,
                gateway_s: 20,
                traffic_s: TRAFFIC_S,
            },
            true => Self {
                subscribers: 1_000,
                routers: 1_000,
                gateway_s: 4,
                traffic_s: 0,
            },
        }
    }
}

/// A measurement.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// `subscribers`, `hijack` or `gateway`.
    pub(crate) name: &'static str,
    /// The number, with its unit.
    pub(crate) number: String,
    /// What the number counts.
    pub(crate) words: String,
    /// One sentence for the page.
    pub(crate) lead: String,
    pub(crate) chart: Option<Chart>,
    /// Small lines of the card: the index of a colour, and points.
    pub(crate) lines: Vec<(usize, Vec<(f64, f64)>)>,
    /// How it was measured, and what repeats it.
    pub(crate) how: Vec<String>,
    /// Why it could not be measured.
    pub(crate) missing: Option<String>,
}

/// What a measurement is called, and the function that takes it.
type Measurement = (fn(&Size) -> String, fn(&Size, Instant) -> Part);

/// All measurements, in their order.
pub(crate) const ALL: [Measurement; 3] = [
    (
        |size| format!("{} subscribers connect", count(size.subscribers)),
        |size, _| settle("subscribers", subscribers(size)),
    ),
    (
        |size| format!("a prefix hijack among {} routers", count(size.routers)),
        |size, until| settle("hijack", hijack(size, until)),
    ),
    (
        |_| "a home gateway without and with fair queues".to_owned(),
        |size, until| settle("gateway", gateway(size, until)),
    ),
];

fn settle(name: &'static str, measured: Result<Part>) -> Part {
    match measured {
        Ok(part) => Part { name, ..part },
        Err(error) => Part {
            name,
            number: "\u{2013}".into(),
            words: format!("{name}: not measured"),
            missing: Some(format!("{error:#}")),
            ..Part::default()
        },
    }
}

fn count(number: u32) -> String {
    grouped(f64::from(number), 0)
}

fn subscribers(size: &Size) -> Result<Part> {
    let figures = tool_demo::figures(size.subscribers, size.traffic_s)?;
    let seconds = figures.took.as_secs_f64();
    let rate = figures.subscribers as f64 / seconds.max(1e-9);
    let all = grouped(figures.subscribers as f64, 0);
    let rate = grouped(round_to_two_digits(rate), 0);
    let (time, up) = (Axis::linear("time", "s"), Axis::linear("sessions", ""));
    let mut chart = Chart::new(Kind::Line, "Sessions that are up", time, up);
    chart.subtitle =
        "A LAC opens a tunnel and a session for each subscriber; the LNS gives it an address."
            .into();
    let course = figures.course;
    chart.series = vec![Series::from_points("sessions", course.iter().copied(), []).coloured(0)];
    let mut how = vec![format!(
        "Two daemons on this machine, LAC and LNS. Each subscriber authenticates with CHAP and gets an IPv4 address. \
         The LNS used {:.0} \u{b5}s of processor time and {:.1} kB of memory per subscriber. headend demo repeats this.",
        figures.lns_cpu_us,
        figures.lns_bytes / 1e3
    )];
    if let [up, down] = figures.tcp_gbit_per_s[..] {
        how.push(format!(
            "TCP through the tunnels, with the senders and receivers on the same cores: {up:.1} Gbit/s from subscribers, \
             {down:.1} Gbit/s to subscribers."
        ));
    } else if let Some(why) = figures.missing {
        how.push(format!(
            "Not measured: traffic through the tunnels ({why})."
        ));
    } else {
        how.push("Not measured: traffic through the tunnels, because this tour was quick.".into());
    }
    Ok(Part {
        number: format!("{rate}/s"),
        words: format!(
            "subscribers connected: {all} in {seconds:.2} s, between two daemons on one machine"
        ),
        lead: format!("{all} subscribers got an address in {seconds:.2} s."),
        chart: Some(chart),
        lines: vec![(0, course)],
        how,
        ..Part::default()
    })
}

/// The same run differs by a few per cent from time to time, so further digits say nothing.
fn round_to_two_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.max(1.0).log10().floor() - 1.0);
    (value / unit).round() * unit
}

/// The scenario of `docs/emulate/hijack.toml`, for any number of routers.
fn scenario(routers: u32) -> String {
    let (victim, hijacker) = (routers / 10 * 9, routers / 10 * 7);
    format!(
        "title = \"A hijack that nobody checks\"\nseed = 3\nrun_s = 30\nstop_when_quiet_s = 3\n\
         [topology]\nkind = \"random\"\nrouters = {routers}\n[links]\ndelay_ms = 20\njitter_ms = 10\n\
         [[event]]\nkind = \"announce\"\nat_s = 2\nrouter = \"as{victim}\"\n\
         [[event]]\nkind = \"hijack\"\nat_s = 5\nvictim = \"as{victim}\"\nrouter = \"as{hijacker}\"\n"
    )
}

fn hijack(size: &Size, until: Instant) -> Result<Part> {
    let scenario = Scenario::load(&scenario(size.routers), "the tour's scenario")?;
    let started = Instant::now();
    let mut emulation = Emulation::new(scenario);
    while emulation.step(TURNS) {
        ensure!(Instant::now() < until, "the tour's time was over");
    }
    let real_s = started.elapsed().as_secs_f64();
    let results = emulation.finish();
    let (share, settled_s) = deceived(&results).context("the emulation has no hijack")?;
    let mut charts = results.charts();
    let label = results.events.iter().find(|event| event.kind == "hijack");
    let label = label.map_or("", |event| event.label.as_str());
    let at = charts
        .iter()
        .position(|chart| chart.title.ends_with(label) && !label.is_empty());
    let chart = charts.swap_remove(at.unwrap_or(0));
    let routers = count(size.routers);
    let percent = format!("{:.0} %", share * 100.0);
    Ok(Part {
        number: percent.clone(),
        words: format!(
            "of {routers} routers followed a hijacked prefix; their routes settled within {settled_s:.1} s"
        ),
        lead: format!(
            "{percent} of {routers} routers followed the hijacker within {settled_s:.1} s."
        ),
        lines: hijack_lines(&results),
        chart: Some(chart),
        how: vec![format!(
            "{routers} BGP routers, each a whole speaker, in one process and in virtual time: {} messages in {real_s:.1} s \
             of real time. No router checks the origin of routes. headend emulate runs such scenarios from a file.",
            grouped(results.messages as f64, 0)
        )],
        ..Part::default()
    })
}

/// The share of routers that the hijacker deceived, and how long the routes took to settle.
fn deceived(results: &Results) -> Option<(f64, f64)> {
    let event = results.events.iter().find(|event| event.kind == "hijack")?;
    let address = results
        .addresses
        .iter()
        .find(|address| !address.hijackers.is_empty())?;
    Some((address.deceived_max, event.convergence_s?))
}

/// The shares of the owner and of the hijacker after the hijack.
fn hijack_lines(results: &Results) -> Vec<(usize, Vec<(f64, f64)>)> {
    let hijack = results.events.iter().find(|event| event.kind == "hijack");
    let (Some(event), Some(address)) = (hijack, results.addresses.first()) else {
        return Vec::new();
    };
    let end_s = event.at_s + 1.3 * event.convergence_s.unwrap_or(1.0);
    let shares = address.shares.iter();
    let shares: Vec<_> = shares
        .map(|share| (share.at_s, share.owner, share.deceived))
        .collect();
    let line = |value: fn(&(f64, f64, f64)) -> f64| {
        let inside = |share: &&(f64, f64, f64)| (event.at_s..=end_s).contains(&share.0);
        let before = shares.iter().rfind(|share| share.0 < event.at_s);
        let first = before.map(|share| (event.at_s, value(share)));
        let mut points: Vec<(f64, f64)> = first.into_iter().collect();
        points.extend(
            shares
                .iter()
                .filter(inside)
                .map(|share| (share.0, value(share))),
        );
        points.extend(points.last().map(|last| (end_s, last.1)));
        points
    };
    vec![(2, line(|share| share.1)), (1, line(|share| share.2))]
}

fn gateway(size: &Size, until: Instant) -> Result<Part> {
    let stop = Stop::default();
    let plan = Plan {
        place: Place::Model,
        link: Link::default(),
        treatment: Treatment::Fair,
        engine: Engine::User,
        seconds: size.gateway_s,
        settle: 0,
        seed: 1,
        stop: stop.clone(),
    };
    // Ends the measurement when the tour's time is over.
    let (done, over) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let left = until.saturating_duration_since(Instant::now());
        if over.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            stop.set();
        }
    });
    let bulk = Row::ALL.into_iter().filter(|row| row.load == Load::Bulk);
    let measured: std::result::Result<Vec<rows::Result>, _> =
        bulk.map(|row| plan.probe(row)).collect();
    drop(done);
    // It only waits; it cannot panic.
    let _ = watch.join();
    let measured = measured?;
    let [without, with] = &measured[..] else {
        bail!("the table has no rows with uploads");
    };
    ensure!(
        !without.partial && !with.partial,
        "the tour's time was over"
    );
    gateway_part([without, with], &plan.link)
}

fn gateway_part([without, with]: [&rows::Result; 2], link: &Link) -> Result<Part> {
    let half = |result: &rows::Result| {
        let middle = result.ping_percentile_ms(0.5);
        middle.context("no ping was answered")
    };
    let (slow, fast) = (half(without)?, half(with)?);
    let axes = (Axis::linear("time", "s"), Axis::linear("round trip", "ms"));
    let title = "One host's pings while another uploads three files";
    let mut chart = Chart::new(Kind::OverTime, title, axes.0, axes.1).of_packets();
    let (up, down) = (link.up_bps as f64 / 1e6, link.down_bps as f64 / 1e6);
    chart.subtitle = format!("A link of {up} Mbit/s up and {down} Mbit/s down");
    let mut lines = Vec::new();
    for (name, colour, result) in [
        ("without a policy", 1, without),
        ("with fair queues", 2, with),
    ] {
        let answered = result
            .pings
            .iter()
            .filter_map(|(at, rtt)| Some((*at, (*rtt)?)));
        let lost = result.pings.iter().filter(|ping| ping.1.is_none());
        let series = Series::from_points(name, answered.clone(), lost.map(|ping| ping.0));
        chart.series.push(series.coloured(colour));
        lines.push((colour, answered.collect()));
    }
    Ok(Part {
        number: format!("{slow:.0} \u{2192} {fast:.0} ms"),
        words: "median ping beside three uploads: without a policy, and with headend's fair queues".into(),
        lead: format!("Beside three uploads, the median ping takes {slow:.0} ms; with fair queues, it takes {fast:.0} ms."),
        chart: Some(chart),
        lines,
        how: vec![
            "Two hosts share the link, in virtual time: the same seed gives the same result. headend lab home-gateway \
             repeats this with the kernel's TCP in namespaces, and headend qos run does it on a real link."
                .into(),
        ],
        ..Part::default()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn size() -> Size {
        Size {
            subscribers: 1,
            routers: 100,
            gateway_s: 3,
            traffic_s: 0,
        }
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    #[test]
    fn the_hijack_has_a_share_a_chart_and_two_lines() {
        let part = hijack(&size(), later()).unwrap();
        assert!(part.number.ends_with(" %"), "{}", part.number);
        assert!(part.chart.unwrap().title.contains("as70"));
        assert_eq!(part.lines.len(), 2);
        assert!(part.lines.iter().all(|(_, points)| points.len() > 2));
        // The hijacker gains what the owner loses.
        let ends = |at: usize| {
            let points = &part.lines[at].1;
            (points[0].1, points[points.len() - 1].1)
        };
        let (owner, hijacker) = (ends(0), ends(1));
        assert!(
            owner.0 > owner.1 && hijacker.0 < hijacker.1,
            "{owner:?} {hijacker:?}"
        );
    }

    #[test]
    fn fair_queues_shorten_the_median_ping() {
        let part = gateway(&size(), later()).unwrap();
        let numbers: Vec<f64> = part
            .number
            .trim_end_matches(" ms")
            .split(" \u{2192} ")
            .map(|number| number.parse().unwrap())
            .collect();
        assert!(numbers[0] > 3.0 * numbers[1], "{}", part.number);
    }

    #[test]
    fn what_has_no_time_left_is_missing_with_the_reason() {
        let over = Instant::now();
        for (name, part) in [
            ("hijack", settle("hijack", hijack(&size(), over))),
            ("gateway", settle("gateway", gateway(&size(), over))),
        ] {
            assert_eq!(part.name, name);
            assert!(part.missing.is_some(), "{name}");
        }
    }

    #[test]
    fn rates_keep_two_digits() {
        assert_eq!(round_to_two_digits(21_437.0), 21_000.0);
        assert_eq!(round_to_two_digits(987.0), 990.0);
        assert_eq!(round_to_two_digits(0.0), 0.0);
    }
}
