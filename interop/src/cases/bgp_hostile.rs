//! Peers that flood, that do not read, that close at any octet, and that send malformed UPDATEs: the effect on
//! another peer's session with hold times of 1 s and 3 s.

use super::bgp::{SOON, settings};
use super::bgp_tables::{announcements, withdrawals};
use crate::bgp::{Kind, Manner, Player, Router, Setup};
use crate::headend::Headend;
use crate::net::LAC;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::{Duration, Instant};
use wire::bgp::attr::{self, code, flag};
use wire::bgp::{NextHop, Nlri, UpdateWriter};

const FLOOD: &str = "10.9.0.3";
const DEAF: &str = "10.9.0.4";
const CUT: &str = "10.9.0.5";
const WRONG: &str = "10.9.0.6";
const ALL: [&str; 4] = [FLOOD, DEAF, CUT, WRONG];

/// How long they run.
const LAST: Duration = Duration::from_secs(8);

/// Accepts any address on the wire, and ends the session of a peer that does not read for a while.
const OTHERS: &str =
    "[[bgp.dynamic]]\nprefix = \"10.9.0.0/24\"\nremote_asn = \"any\"\nsend_hold_s = 6\n";

/// First the peers with wrong or missing octets, then those that send too much and do not read; beside a
/// well-behaved BIRD.
pub(crate) fn cost_only_themselves(bench: &Bench<'_>) -> Result<()> {
    for address in ALL {
        let address = format!("{address}/24");
        bench
            .wire
            .lac
            .ip(&["address", "add", &address, "dev", "wire"])?;
    }
    let us = Headend::speaker(bench, &settings("", "", OTHERS))?;
    let good = Router::start(bench, Kind::Bird, &Setup::default())?;
    us.established(LAC)?;
    let since = up_since(&good)?;

    let malformed = malformed()?;
    let mut wrong = Player::start(bench, Manner::Once, WRONG, 65_006, &malformed.concat())?;
    wrong.established(SOON)?;
    let mut cut = Player::start(bench, Manner::Cut, CUT, 65_005, &malformed[0])?;
    are_counted(&us, &malformed)?;
    cut.process.wait_for("cut at each", SOON)?;
    cut.established(SOON)?;
    us.established(CUT)?;
    let mut deaf = Player::start(bench, Manner::Deaf, DEAF, 65_004, &[])?;
    deaf.established(SOON)?;
    let octets = [announcements()?, withdrawals()].concat();
    let mut flood = Player::start(bench, Manner::Again, FLOOD, 65_001, &octets)?;
    flood.established(SOON)?;
    let started = Instant::now();
    let told = us.happened(DEAF, "ended", "")?;
    ensure!(told.to_lowercase().contains("send hold"), "{told}");
    std::thread::sleep(LAST.saturating_sub(started.elapsed()));

    let row = us.neighbor(FLOOD)?;
    let updates = row["messages_in"]["update"].as_u64();
    ensure!(row["ups"] == 1 && updates > Some(1_000), "no flood: {row}");
    let row = us.neighbor(LAC)?;
    ensure!(row["ups"] == 1 && row["state"] == "Established", "{row}");
    ensure!(up_since(&good)? == since, "BIRD's session has restarted");
    drop((flood, deaf, wrong, cut));
    us.paths("203.0.113.0/24", 1)?;
    us.stop()
}

/// When BIRD's session was established, as BIRD reports it.
fn up_since(good: &Router<'_>) -> Result<String> {
    let printed = good.wait_for("show protocols headend", &["Established"], SOON)?;
    let line = printed.lines().find(|line| line.starts_with("headend"));
    let mut words = line.context("a line")?.split_whitespace();
    words.nth(4).map(str::to_owned).context("a time")
}

/// UPDATEs of one route each: one that RFC 7606 treats as withdrawn because of an undefined origin, one that
/// loses an attribute because of a three-octet aggregator.
fn malformed() -> Result<[Vec<u8>; 2]> {
    let mut both = [Vec::new(), Vec::new()];
    for (number, out) in both.iter_mut().enumerate() {
        let mut attributes = Vec::new();
        let origin = if number == 0 { 9 } else { 0 };
        attr::emit(flag::TRANSITIVE, code::ORIGIN, &[origin], &mut attributes);
        attr::emit(
            flag::TRANSITIVE,
            code::AS_PATH,
            &[2, 1, 0, 0, 0xfd, 0xee],
            &mut attributes,
        );
        if number == 1 {
            attr::emit(
                flag::OPTIONAL_TRANSITIVE,
                code::AGGREGATOR,
                &[1, 2, 3],
                &mut attributes,
            );
        }
        let route = Nlri {
            prefix: format!("192.0.2.{}/25", 128 * number).parse()?,
            path_id: 0,
        };
        let next_hop = NextHop::V4(WRONG.parse()?);
        let written = UpdateWriter::default().announce(&attributes, next_hop, [route], out);
        written.ok().context("no room")?;
    }
    Ok(both)
}

/// They are counted, shown with the octets of the last one, and the session stays established.
fn are_counted(us: &Headend, malformed: &[Vec<u8>; 2]) -> Result<()> {
    let row = us.neighbor_is(WRONG, SOON, |row| row["malformed"] == 2)?;
    let octets: String = malformed[1]
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    let shown = row["malformed_octets"].as_str().context("octets")?;
    ensure!(
        !shown.is_empty() && octets.contains(shown),
        "{shown} is not of {octets}"
    );
    let why = row["malformed_because"].as_str().unwrap_or_default();
    ensure!(why.contains("attribute 7"), "{row}");
    ensure!(row["state"] == "Established" && row["ups"] == 1, "{row}");
    // The second route is accepted without the attribute; the first is absent.
    let is_there = |prefix: &str| -> Result<bool> {
        let paths: Vec<Value> = us.routes_to(prefix)?;
        Ok(paths.iter().any(|path| path["peer"] == WRONG))
    };
    ensure!(is_there("192.0.2.128/25")?, "attribute discard");
    ensure!(!is_there("192.0.2.0/25")?, "treat-as-withdraw");
    Ok(())
}
