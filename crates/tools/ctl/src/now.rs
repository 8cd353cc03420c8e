//! `headend show now`: the state of the whole daemon as a page.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use serde_json::Value;

use crate::subscriber::Page;
use cli::table::{Shown, age, show};
use control::rows::Now;

pub(crate) const HELP: &str = "\
Counts are since the start of the daemon. --json prints every field; two rows a second apart give rates.

Examples:
  headend show now
  headend show now --json";

/// Prints the row.
pub(crate) fn page(row: &Value, out: &mut impl Write) -> Result<()> {
    let now: Now = serde_json::from_value(row.clone())?;
    let mut page = Page { out };
    page.line("up for", &age(now.uptime_s))?;
    page.line("memory", &bytes(now.rss_bytes))?;
    subscribers(&mut page, &now)?;
    for pool in &now.pools {
        let text = format!("{}: {} of {} leased", pool.name, pool.used, pool.size);
        page.line("pool", &text)?;
    }
    traffic(&mut page, &now)?;
    event_loop(&mut page, &now)?;
    if let Some(radius) = &now.radius {
        let replies: u64 = radius.round_trips.values().sum();
        let mean = radius.round_trips_us / replies.max(1) as f64 / 1_000.0;
        let text = format!(
            "{} outstanding, {} waiting, {} failed, {replies} replies in {mean:.1} ms on average",
            radius.outstanding, radius.waiting, radius.failed
        );
        page.line("RADIUS", &text)?;
    }
    if let Some(bgp) = &now.bgp {
        let text = format!(
            "{} of {} peers established, {} prefixes, {} UPDATEs in, {} out",
            bgp.established, bgp.peers, bgp.prefixes, bgp.updates_in, bgp.updates_out
        );
        page.line("BGP", &text)?;
        let margin = bgp.hold_margin_s.map(|margin| format!("{margin:.1}s left"));
        page.line("  hold timers", &margin.unwrap_or_default())?;
    }
    Ok(())
}

fn subscribers(page: &mut Page<'_, impl Write>, now: &Now) -> Result<()> {
    let subscribers = &now.subscribers;
    let up = subscribers.by_state.get("up").copied().unwrap_or(0);
    let others = subscribers.by_state.iter();
    let others = others.filter(|(state, _)| *state != "up");
    page.line("subscribers", &with_parts(up, "up", others))?;
    page.line("  came up", &subscribers.came_up.to_string())?;
    page.line("  ended", &sum(&subscribers.ended))?;
    page.line("  refused", &sum(&subscribers.refused))?;
    let tunnels = &now.tunnels;
    let established = tunnels.by_state.get("established").copied().unwrap_or(0);
    let others = tunnels.by_state.iter();
    let others = others.filter(|(state, _)| *state != "established");
    page.line("tunnels", &with_parts(established, "established", others))?;
    let text = format!(
        "{}, {} control messages retransmitted",
        tunnels.sessions, tunnels.retransmissions
    );
    page.line("  sessions", &text)
}

fn traffic(page: &mut Page<'_, impl Write>, now: &Now) -> Result<()> {
    let traffic = &now.traffic;
    for (label, packets, octets) in [
        ("in", traffic.packets_in, traffic.octets_in),
        ("out", traffic.packets_out, traffic.octets_out),
    ] {
        page.line(label, &format!("{packets} packets, {}", bytes(octets)))?;
    }
    page.line("dropped", &sum(&traffic.dropped))
}

fn event_loop(page: &mut Page<'_, impl Write>, now: &Now) -> Result<()> {
    let event_loop = &now.event_loop;
    let all = event_loop.busy_s + event_loop.waited_s;
    let busy = 100.0 * event_loop.busy_s / all.max(f64::MIN_POSITIVE);
    let mut handlers: Vec<_> = event_loop.handlers_s.iter().collect();
    handlers.sort_by(|one, other| other.1.total_cmp(one.1));
    let most = handlers.iter().take(3).filter(|(_, time)| **time > 0.0);
    let most: Vec<_> = most
        .map(|(name, time)| format!("{name} {time:.3} s"))
        .collect();
    let text = format!("{busy:.1} % busy, most of it {}", most.join(", "));
    page.line("event loop", &text)?;
    let fired: u64 = event_loop.lateness.values().sum();
    let mean = event_loop.lateness_us / fired.max(1) as f64;
    let text = format!("{fired} fired, {mean:.0} us late on average");
    page.line("  timers", &text)?;
    page.line("  overruns", &event_loop.overruns.to_string())
}

/// The sum of counts, and the counts that are not zero, the largest first.
fn sum(counts: &BTreeMap<String, u64>) -> String {
    let all: u64 = counts.values().sum();
    with_parts(all, "", counts.iter())
}

/// `12 up (3 asking, 1 ending)`.
fn with_parts<'a>(
    all: u64,
    word: &str,
    parts: impl Iterator<Item = (&'a String, &'a u64)>,
) -> String {
    let mut parts: Vec<_> = parts.filter(|(_, count)| **count > 0).collect();
    parts.sort_by(|one, other| other.1.cmp(one.1));
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let mut text = all.to_string();
    if !word.is_empty() {
        text = format!("{text} {word}");
    }
    if !parts.is_empty() {
        text = format!("{text} ({})", parts.join(", "));
    }
    text
}

fn bytes(count: u64) -> String {
    show(&count.into(), Shown::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_line_for_each_part_that_there_is() {
        let mut now = Now {
            schema: Now::SCHEMA.into(),
            uptime_s: 65.0,
            ..Now::default()
        };
        let text = |now: &Now| {
            let mut out = Vec::new();
            page(&serde_json::to_value(now).unwrap(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let bare = text(&now);
        assert!(bare.starts_with("up for           1m05s\n"), "{bare}");
        assert!(!bare.contains("RADIUS") && !bare.contains("BGP"), "{bare}");
        let ended = [("User Request", 2), ("Idle Timeout", 5), ("NAS Error", 0)];
        now.subscribers.ended = ended.map(|(cause, count)| (cause.to_owned(), count)).into();
        let states = [("up", 7), ("asking", 1), ("link", 0)];
        now.subscribers.by_state = states
            .map(|(state, count)| (state.to_owned(), count))
            .into();
        now.bgp = Some(control::rows::NowBgp {
            hold_margin_s: Some(61.25),
            ..control::rows::NowBgp::default()
        });
        let text = text(&now);
        for line in [
            "subscribers      7 up (1 asking)\n",
            "  ended          7 (5 Idle Timeout, 2 User Request)\n",
            "  hold timers    61.2s left\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
    }
}
