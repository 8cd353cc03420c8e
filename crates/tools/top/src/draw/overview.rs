//! The whole daemon on one screen.

use std::collections::BTreeMap;

use control::rows::Now;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Theme;
use crate::app::App;
use crate::figures::{
    bits, count, gauge, micros, octets, per_second, percent, printable, short, spark,
};
use crate::pace::{Pace, Part, Ring, Series, sum};

/// Width of the first column and of the figures.
const LABEL: usize = 11;
const FIGURE: usize = 13;

/// A hold margin below this is shown as a warning, in seconds.
const MARGIN_LOW_S: f64 = 5.0;

pub(super) fn draw(app: &App, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let Some(now) = app.pace.last() else {
        return;
    };
    let page = Page {
        pace: &app.pace,
        theme,
        graph: usize::from(area.width).saturating_sub(LABEL + FIGURE + 4) * 2 / 5,
    };
    let mut above = page.subscribers(now);
    above.extend(page.traffic());
    let below = page.below(now);
    let room = usize::from(area.height).saturating_sub(above.len() + below.len());
    let mut all = above;
    all.extend(page.pools(now, room));
    all.extend(below);
    super::lines(buffer, area, &all, theme);
}

struct Page<'a> {
    pace: &'a Pace,
    theme: Theme,
    /// Width of the graphs.
    graph: usize,
}

impl Page<'_> {
    /// A line under a heading of its own.
    fn headed(&self, heading: &str, text: String) -> Line<'static> {
        Line::from(vec![
            Span::styled(format!("{heading:<LABEL$} "), self.theme.heading()),
            Span::raw(text),
        ])
    }

    /// A figure, its recent values, and the parts that it is made of.
    fn line(&self, label: &str, figure: &str, ring: &Ring, parts: String) -> Line<'static> {
        let values = ring.newest(self.graph);
        Line::from(vec![
            Span::raw(format!("  {label:<9} {figure:>FIGURE$}  ")),
            Span::styled(
                spark(&values, self.graph, self.theme.is_ascii),
                self.theme.graph(),
            ),
            Span::raw("  "),
            Span::styled(parts, self.theme.dim()),
        ])
    }

    fn subscribers(&self, now: &Now) -> Vec<Line<'static>> {
        let states = &now.subscribers.by_state;
        let known = ["up", "networks", "asking", "link", "ending"];
        let number = |name: &str| states.get(name).copied().unwrap_or(0);
        let mut text = vec![format!("{} up", count(number("up")))];
        let versions = &now.subscribers.by_version;
        for (name, words) in [("both", "dual-stack"), ("ipv6", "IPv6 alone")] {
            let number = versions.get(name).copied().unwrap_or(0);
            if number > 0 {
                text.push(format!("{} {words}", count(number)));
            }
        }
        let others = states
            .keys()
            .map(String::as_str)
            .filter(|name| !known.contains(name));
        for name in known[1..].iter().copied().chain(others) {
            if number(name) > 0 {
                text.push(format!("{} {}", count(number(name)), printable(name)));
            }
        }
        let pace = self.pace;
        let ended = pace.parts(|now| &now.subscribers.ended);
        let refused = pace.parts(|now| &now.subscribers.refused);
        let tunnels = &now.tunnels;
        let states = counted(&tunnels.by_state);
        let again = pace.rate(|now| now.tunnels.retransmissions as f64);
        vec![
            self.headed("SUBSCRIBERS", text.join(", ")),
            self.line(
                "came up",
                &rate(pace.rate(|now| now.subscribers.came_up as f64)),
                pace.ring(Series::CameUp),
                format!("{} since the start", count(now.subscribers.came_up)),
            ),
            self.line(
                "ended",
                &rate(pace.rate(|now| sum(&now.subscribers.ended))),
                pace.ring(Series::Ended),
                reasons(&ended),
            ),
            self.line(
                "refused",
                &rate(pace.rate(|now| sum(&now.subscribers.refused))),
                pace.ring(Series::Refused),
                reasons(&refused),
            ),
            self.headed(
                "TUNNELS",
                format!(
                    "{states}, {} sessions, {} retransmissions",
                    count(tunnels.sessions),
                    rate(again)
                ),
            ),
        ]
    }

    fn traffic(&self) -> Vec<Line<'static>> {
        let pace = self.pace;
        let bandwidth = |rate: Option<f64>| rate.map_or("-".into(), bits);
        let packets = |rate: Option<f64>| {
            rate.map_or(String::new(), |rate| format!("{} packets/s", short(rate)))
        };
        let dropped = pace.parts(|now| &now.traffic.dropped);
        vec![
            self.headed("TRAFFIC", "in is from subscribers, out is to them".into()),
            self.line(
                "in",
                &bandwidth(pace.rate(|now| now.traffic.octets_in as f64)),
                pace.ring(Series::OctetsIn),
                packets(pace.rate(|now| now.traffic.packets_in as f64)),
            ),
            self.line(
                "out",
                &bandwidth(pace.rate(|now| now.traffic.octets_out as f64)),
                pace.ring(Series::OctetsOut),
                packets(pace.rate(|now| now.traffic.packets_out as f64)),
            ),
            self.line(
                "dropped",
                &rate(pace.rate(|now| sum(&now.traffic.dropped))),
                pace.ring(Series::Dropped),
                reasons(&dropped),
            ),
        ]
    }

    /// The pools of addresses and of prefixes, the fullest first, in `room` lines.
    fn pools(&self, now: &Now, room: usize) -> Vec<Line<'static>> {
        if now.pools.len() + now.prefix_pools.len() == 0 || room < 2 {
            return Vec::new();
        }
        let share = |used: u64, size: u64| used as f64 / size.max(1) as f64;
        let mut pools: Vec<_> = now.pools.iter().chain(&now.prefix_pools).collect();
        pools.sort_by(|a, b| share(b.used, b.size).total_cmp(&share(a.used, a.size)));
        let is_cut = pools.len() > room - 1;
        let shown = if is_cut { room - 2 } else { pools.len() };
        let mut lines = vec![self.headed("POOLS", String::new())];
        for pool in &pools[..shown] {
            let full = share(pool.used, pool.size);
            let style = match full {
                0.95.. => self.theme.bad(),
                0.8.. => self.theme.warning(),
                _ => self.theme.good(),
            };
            let name: String = printable(&pool.name)
                .chars()
                .take(LABEL + FIGURE - 7)
                .collect();
            let width = LABEL + FIGURE - 7;
            lines.push(Line::from(vec![
                Span::raw(format!("  {name:<width$} {:>5}  ", percent(full))),
                Span::styled(gauge(full, self.graph, self.theme.is_ascii), style),
                Span::raw(format!("  {} of {}", count(pool.used), count(pool.size))),
            ]));
        }
        if is_cut {
            let more = format!("  {} more pools", pools.len() - shown);
            lines.push(Line::styled(more, self.theme.dim()));
        }
        lines
    }

    fn below(&self, now: &Now) -> Vec<Line<'static>> {
        let mut lines = vec![self.event_loop()];
        lines.extend(now.radius.as_ref().map(|radius| {
            let of = |share| {
                let bound = self.pace.quantile(share, |now| {
                    now.radius.as_ref().map(|radius| &radius.round_trips)
                });
                bound.map_or("-".into(), below)
            };
            self.headed(
                "RADIUS",
                format!(
                    "p50 {}, p99 {}, {} outstanding, {} waiting, {} failed",
                    of(0.5),
                    of(0.99),
                    count(radius.outstanding),
                    count(radius.waiting),
                    count(radius.failed)
                ),
            )
        }));
        if let Some(bgp) = &now.bgp {
            let updates = |of: fn(&control::rows::NowBgp) -> u64| {
                rate(
                    self.pace
                        .rate(|now| now.bgp.as_ref().map_or(0.0, |bgp| of(bgp) as f64)),
                )
            };
            let peers = format!("{} of {} peers", count(bgp.established), count(bgp.peers));
            let mut line = self.headed("BGP", peers);
            if let Some(margin) = bgp.hold_margin_s {
                let style = margin_style(margin, self.theme);
                line.push_span(Span::styled(format!(", hold margin {margin:.1} s"), style));
            }
            line.push_span(Span::raw(format!(
                ", {} prefixes, updates in {} out {}",
                count(bgp.prefixes),
                updates(|bgp| bgp.updates_in),
                updates(|bgp| bgp.updates_out)
            )));
            lines.push(line);
        }
        lines.push(self.headed("MEMORY", octets(now.rss_bytes as f64)));
        lines
    }

    fn event_loop(&self) -> Line<'static> {
        let pace = self.pace;
        let busy = pace.rate(|now| now.event_loop.busy_s);
        let late = pace.quantile(0.99, |now| Some(&now.event_loop.lateness));
        let overruns = pace.last().map_or(0, |now| now.event_loop.overruns);
        self.headed_graph(
            "LOOP",
            &busy.map_or("-".into(), |busy| format!("{} busy", percent(busy))),
            pace.ring(Series::Busy),
            format!(
                "late p99 {}, {} overruns",
                late.map_or("-".into(), below),
                count(overruns)
            ),
        )
    }

    fn headed_graph(
        &self,
        heading: &str,
        figure: &str,
        ring: &Ring,
        text: String,
    ) -> Line<'static> {
        let values = ring.newest(self.graph);
        Line::from(vec![
            Span::styled(format!("{heading:<LABEL$} "), self.theme.heading()),
            Span::raw(format!("{figure:>FIGURE$}  ")),
            Span::styled(
                spark(&values, self.graph, self.theme.is_ascii),
                self.theme.graph(),
            ),
            Span::raw(format!("  {text}")),
        ])
    }
}

/// A margin that is nearly used up is a warning.
pub(super) fn margin_style(margin_s: f64, theme: Theme) -> Style {
    if margin_s < MARGIN_LOW_S {
        theme.bad()
    } else {
        theme.text()
    }
}

/// The upper bound of a bucket.
pub(super) fn below(bound_us: f64) -> String {
    if bound_us.is_finite() {
        format!("<{}", micros(bound_us))
    } else {
        "over the last bucket".into()
    }
}

pub(super) fn rate(rate: Option<f64>) -> String {
    rate.map_or("-".into(), per_second)
}

/// "3 established, 1 opening".
fn counted(map: &BTreeMap<String, u64>) -> String {
    let mut all: Vec<(&String, u64)> = map.iter().map(|(name, &number)| (name, number)).collect();
    all.retain(|(_, number)| *number > 0);
    all.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let texts: Vec<String> = all
        .iter()
        .map(|(name, number)| format!("{} {}", count(*number), printable(name)))
        .collect();
    if texts.is_empty() {
        "none".into()
    } else {
        texts.join(", ")
    }
}

/// The reasons that occur now with their rates; if none does, the totals since the start.
fn reasons(parts: &[Part]) -> String {
    let is_now = |part: &&Part| part.rate.is_some_and(|rate| rate > 0.0);
    let now: Vec<String> = parts
        .iter()
        .filter(is_now)
        .map(|part| format!("{} {}", printable(&part.name), rate(part.rate)))
        .collect();
    if !now.is_empty() {
        return now.join(", ");
    }
    let all: Vec<String> = parts
        .iter()
        .filter(|part| part.total > 0.0)
        .map(|part| format!("{} {}", printable(&part.name), count(part.total as u64)))
        .collect();
    all.join(", ")
}
