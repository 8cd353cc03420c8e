//! 100,000 routes through our speaker, compared prefix by prefix with all their attributes: the routes that one
//! daemon (or a peer played by hand) announces, and the table that another daemon dumps (RFC 6396).

use super::bgp::{SOON, has_all, settings};
use crate::bgp::{Kind, Manner, OUR_ASN, Player, Router, Setup, THEIR_ASN};
use crate::headend::Headend;
use crate::net::LAC;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use capfile::mrt::{Body, Reader};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use wire::bgp::attr::{self, Community, ExtCommunity, LargeCommunity, code, flag};
use wire::bgp::{FamilyId, NextHop, Nlri, Prefix, UpdateWriter};

/// Routes, and the sets of attributes that they share.
const ROUTES: u32 = 100_000;
const SETS: u32 = 1_000;

/// The receiver's address.
const SINK: &str = "10.9.0.3";
const SINK_ASN: u32 = 65_003;

/// How long a table may take to arrive.
const PASS_MAX: Duration = Duration::from_secs(60);

/// A route's attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Carried {
    path: Vec<u32>,
    origin: u8,
    communities: Vec<Community>,
    ext_communities: Vec<ExtCommunity>,
    large_communities: Vec<LargeCommunity>,
    next_hop: Option<std::net::IpAddr>,
}

type Table = BTreeMap<Prefix, Carried>;

/// The prefix with that number: 20.0.0.0/24 and so on.
fn prefix(number: u32) -> Prefix {
    Prefix::v4((20 << 24) + (number << 8), 24)
}

/// Its attributes, with `before` prepended to its path.
fn carried(number: u32, before: &[u32], next_hop: &str) -> Result<Carried> {
    let set = number % SETS;
    let mut path = before.to_vec();
    // A route target: its type, the AS, and a number.
    let target = (2 << 48) | (u64::from(THEIR_ASN) << 32) | u64::from(set);
    path.extend([4_200_001_000 + set, 64_512 + set % 400]);
    Ok(Carried {
        path,
        origin: 0,
        communities: vec![Community((THEIR_ASN << 16) | set)],
        ext_communities: vec![ExtCommunity(target)],
        large_communities: vec![LargeCommunity([4_200_000_007, set, 7])],
        next_hop: Some(next_hop.parse()?),
    })
}

/// The table that a receiver should have.
fn expected() -> Result<Table> {
    (0..ROUTES)
        .map(|number| {
            Ok((
                prefix(number),
                carried(number, &[OUR_ASN, THEIR_ASN], "10.9.0.2")?,
            ))
        })
        .collect()
}

fn two_peers() -> String {
    let sink = format!(
        "[[bgp.neighbor]]\naddress = \"{SINK}\"\nremote_asn = {SINK_ASN}\npassive = true\n"
    );
    settings("", "passive = true\n", &sink)
}

fn second_address(bench: &Bench<'_>) -> Result<()> {
    let address = format!("{SINK}/24");
    bench
        .wire
        .lac
        .ip(&["address", "add", &address, "dev", "wire"])
}

/// BIRD's static routes, through us, in FRR's table; and none of them after BIRD withdraws them.
pub(crate) fn from_bird_to_frr(bench: &Bench<'_>) -> Result<()> {
    second_address(bench)?;
    let us = Headend::speaker(bench, &two_peers())?;
    let dump = bench.directory.join("frr.mrt");
    let sink = Setup {
        address: SINK,
        asn: SINK_ASN,
        is_passive: false,
        // It dumps its table every four seconds; dumping blocks it, and a partial file is ignored.
        file: &format!("dump bgp routes-mrt {} 4\n", dump.display()),
        // It would log a line for each route whose next hop no zebra knows.
        is_quiet: true,
        ..Setup::default()
    };
    let sink = Router::start(bench, Kind::Frr, &sink)?;
    let source = Setup {
        is_passive: false,
        global: &statics()?,
        ..Setup::default()
    };
    let source = Router::start(bench, Kind::Bird, &source)?;
    us.established(LAC)?;
    us.established(SINK)?;
    we_have(&us, ROUTES)?;
    let mut expected = expected()?;
    // Its dumps omit extended communities, so these are queried for some routes.
    for carried in expected.values_mut() {
        carried.ext_communities.clear();
    }
    is_table(&dump, &expected, || Ok(()))?;
    for number in (0..ROUTES).step_by(9_999) {
        let printed = sink.ask(&format!("show bgp ipv4 unicast {}", prefix(number)))?;
        let target = format!("Extended Community: RT:{THEIR_ASN}:{}\n", number % SETS);
        has_all(&printed, &[&target])?;
    }
    let rows = us.show(&["bgp", "route", "--received", LAC])?;
    ensure!(
        rows.iter().filter(|row| row["best"] == true).count() == ROUTES as usize + 3,
        "{} routes of theirs are shown",
        rows.len()
    );

    source.ask("disable big")?;
    we_have(&us, 0)?;
    is_table(&dump, &Table::new(), || Ok(()))?;
    no_fault(&us)?;
    us.stop()
}

/// Routes of a peer played by hand, through us, in BIRD's table.
pub(crate) fn from_us_to_bird(bench: &Bench<'_>) -> Result<()> {
    second_address(bench)?;
    let us = Headend::speaker(bench, &two_peers())?;
    let sink = Setup {
        address: SINK,
        asn: SINK_ASN,
        is_passive: false,
        ..Setup::default()
    };
    let sink = Router::start(bench, Kind::Bird, &sink)?;
    us.established(SINK)?;
    let mut source = Player::start(bench, Manner::Once, LAC, THEIR_ASN, &announcements()?)?;
    source.established(SOON)?;
    we_have(&us, ROUTES)?;
    let dump = bench.directory.join("bird.mrt");
    let ask = format!("mrt dump table \"master4\" to \"{}\"", dump.display());
    let write = || {
        // It appends to an existing file.
        let _ = std::fs::remove_file(&dump);
        sink.ask(&ask).map(drop)
    };
    is_table(&dump, &expected()?, write)?;

    // The routes are withdrawn when the session ends.
    drop(source);
    we_have(&us, 0)?;
    is_table(&dump, &Table::new(), write)?;
    no_fault(&us)?;
    us.stop()
}

/// The same, in GoBGP's table.
pub(crate) fn from_us_to_gobgp(bench: &Bench<'_>) -> Result<()> {
    second_address(bench)?;
    let us = Headend::speaker(bench, &two_peers())?;
    let sink = Setup {
        address: SINK,
        asn: SINK_ASN,
        is_passive: false,
        is_quiet: true,
        ..Setup::default()
    };
    let sink = Router::start(bench, Kind::Gobgp, &sink)?;
    us.established(SINK)?;
    let mut source = Player::start(bench, Manner::Once, LAC, THEIR_ASN, &announcements()?)?;
    source.established(SOON)?;
    we_have(&us, ROUTES)?;
    sink.wait("neighbor 10.9.0.2 adj-in summary", PASS_MAX, |printed| {
        printed.contains(&format!("Destination: {}", ROUTES + 3))
    })?;
    let table: Value = serde_json::from_str(&sink.ask("-j global rib")?)?;
    let expected = expected()?;
    let mut seen = 0;
    for (prefix, paths) in table.as_object().context("a table")? {
        let Some(expected) = prefix
            .parse()
            .ok()
            .and_then(|prefix: Prefix| expected.get(&prefix))
        else {
            continue;
        };
        seen += 1;
        ensure!(
            paths.as_array().is_some_and(|paths| paths.len() == 1),
            "{paths}"
        );
        let got = gobgp_carried(&paths[0]["attrs"])?;
        ensure!(got == *expected, "{prefix}: {got:?}, not {expected:?}");
    }
    ensure!(seen == ROUTES, "{seen} routes");
    no_fault(&us)?;
    us.stop()
}

/// The attributes, as GoBGP prints them.
fn gobgp_carried(attributes: &Value) -> Result<Carried> {
    let find = |code: u8| {
        let all = attributes.as_array().into_iter().flatten();
        all.into_iter().find(|one| one["type"] == code)
    };
    let numbers = |value: &Value| -> Vec<u32> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|one| u32::try_from(one.as_u64()?).ok())
            .collect()
    };
    let part =
        |code: u8| find(code).with_context(|| format!("no attribute {code} in {attributes}"));
    let target = &part(code::EXT_COMMUNITIES)?["value"][0]["value"];
    let target = target.as_str().and_then(|text| text.split_once(':'));
    let (asn, number) = target.context("a route target")?;
    let target = (2 << 48) | (asn.parse::<u64>()? << 32) | number.parse::<u64>()?;
    let large = &part(code::LARGE_COMMUNITIES)?["value"][0];
    let large = ["ASN", "LocalData1", "LocalData2"]
        .map(|name| numbers(&Value::from(vec![large[name].clone()])));
    ensure!(large.iter().all(|one| one.len() == 1), "{attributes}");
    Ok(Carried {
        path: numbers(&part(code::AS_PATH)?["as_paths"][0]["asns"]),
        origin: part(code::ORIGIN)?["value"]
            .as_u64()
            .map_or(u8::MAX, |origin| origin as u8),
        communities: numbers(&part(code::COMMUNITIES)?["communities"])
            .into_iter()
            .map(Community)
            .collect(),
        ext_communities: vec![ExtCommunity(target)],
        large_communities: vec![LargeCommunity([large[0][0], large[1][0], large[2][0]])],
        next_hop: part(code::NEXT_HOP)?["nexthop"]
            .as_str()
            .and_then(|text| text.parse().ok()),
    })
}

/// Configuration lines for BIRD.
fn statics() -> Result<String> {
    let mut text = String::from("protocol static big {\n ipv4;\n");
    for number in 0..ROUTES {
        let set = number % SETS;
        writeln!(
            text,
            " route {} blackhole {{ bgp_path.prepend({}); bgp_path.prepend({}); bgp_community.add(({THEIR_ASN},{set})); \
             bgp_ext_community.add((rt,{THEIR_ASN},{set})); bgp_large_community.add((4200000007,{set},7)); }};",
            prefix(number),
            64_512 + set % 400,
            4_200_001_000 + set
        )?;
    }
    text.push_str("}\n");
    Ok(text)
}

/// The messages that withdraw the routes.
pub(super) fn withdrawals() -> Vec<u8> {
    let mut out = Vec::new();
    let routes = (0..ROUTES).map(|number| Nlri {
        prefix: prefix(number),
        path_id: 0,
    });
    UpdateWriter::default().withdraw(FamilyId::Ipv4Unicast, routes, &mut out);
    out
}

/// The messages that announce the routes.
pub(super) fn announcements() -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for set in 0..SETS {
        let carried = carried(set, &[THEIR_ASN], LAC)?;
        let mut attributes = Vec::new();
        attr::emit(
            flag::TRANSITIVE,
            code::ORIGIN,
            &[carried.origin],
            &mut attributes,
        );
        attr::emit_with(flag::TRANSITIVE, code::AS_PATH, &mut attributes, |out| {
            out.extend([2, carried.path.len() as u8]);
            out.extend(carried.path.iter().flat_map(|asn| asn.to_be_bytes()));
        });
        let optional = flag::OPTIONAL_TRANSITIVE;
        let octets: Vec<u8> = carried
            .communities
            .iter()
            .flat_map(|one| one.0.to_be_bytes())
            .collect();
        attr::emit(optional, code::COMMUNITIES, &octets, &mut attributes);
        let octets: Vec<u8> = carried
            .ext_communities
            .iter()
            .flat_map(|one| one.0.to_be_bytes())
            .collect();
        attr::emit(optional, code::EXT_COMMUNITIES, &octets, &mut attributes);
        let octets: Vec<u8> = carried
            .large_communities
            .iter()
            .flat_map(|one| one.0.into_iter().flat_map(u32::to_be_bytes))
            .collect();
        attr::emit(optional, code::LARGE_COMMUNITIES, &octets, &mut attributes);
        let routes = (0..ROUTES / SETS).map(|turn| Nlri {
            prefix: prefix(turn * SETS + set),
            path_id: 0,
        });
        let next_hop = NextHop::V4(LAC.parse()?);
        let written = UpdateWriter::default().announce(&attributes, next_hop, routes, &mut out);
        written.ok().context("attributes that leave no room")?;
    }
    UpdateWriter::end_of_rib(FamilyId::Ipv4Unicast, &mut out);
    UpdateWriter::end_of_rib(FamilyId::Ipv6Unicast, &mut out);
    Ok(out)
}

/// Waits until our speaker has that many of the routes.
fn we_have(us: &Headend, routes: u32) -> Result<()> {
    let mut last = Value::Null;
    until(PASS_MAX, || {
        last = us.show(&["bgp", "rib"])?.remove(0);
        let count = last["prefixes"]["ipv4"].as_u64().unwrap_or(0);
        // In addition to each test's own routes.
        Ok(count
            .checked_sub(u64::from(routes))
            .filter(|rest| *rest <= 5))
    })?
    .with_context(|| format!("not {routes} routes: {last}"))?;
    Ok(())
}

/// Waits until a dump, which `write` requests, has the expected routes.
fn is_table(dump: &Path, expected: &Table, write: impl Fn() -> Result<()>) -> Result<()> {
    let mut why = String::new();
    let found = until(PASS_MAX, || {
        write()?;
        // It may be incomplete.
        let Ok(table) = read_table(dump) else {
            return Ok(None);
        };
        if table.len() == expected.len() && table == *expected {
            return Ok(Some(()));
        }
        let differs = expected
            .iter()
            .find(|(prefix, carried)| table.get(prefix) != Some(carried));
        why = match differs {
            Some((prefix, carried)) => {
                format!("{prefix} has {:?}, not {carried:?}", table.get(prefix))
            }
            None => "routes that are not to be there".to_owned(),
        };
        why += &format!("; {} routes of {}", table.len(), expected.len());
        std::thread::sleep(Duration::from_millis(300));
        Ok(None)
    })?;
    found.context(why)
}

/// The routes of 20.0.0.0/7 in a dump.
fn read_table(path: &Path) -> Result<Table> {
    let mut reader = Reader::open(std::fs::File::open(path)?)?;
    let mut table = Table::new();
    while let Some(record) = reader.next_record()? {
        let Body::Rib(rib) = record.body else {
            continue;
        };
        if !Prefix::v4(20 << 24, 7).contains(rib.prefix) {
            continue;
        }
        let Some(entry) = rib.entries().next() else {
            bail!("{} without a route", rib.prefix)
        };
        ensure!(
            rib.entry_count() == 1,
            "{} routes to {}",
            rib.entry_count(),
            rib.prefix
        );
        let octets = entry.attributes;
        table.insert(
            rib.prefix,
            Carried {
                path: attr::as_path(octets).asns().collect(),
                origin: attr::origin(octets) as u8,
                communities: attr::communities(octets).collect(),
                ext_communities: attr::ext_communities(octets).collect(),
                large_communities: attr::large_communities(octets).collect(),
                next_hop: attr::next_hop(octets).map(Into::into),
            },
        );
    }
    Ok(table)
}

fn no_fault(us: &Headend) -> Result<()> {
    for row in us.show(&["bgp", "neighbors"])? {
        ensure!(row["malformed"] == 0, "{row}");
    }
    let sink = us.neighbor(SINK)?;
    ensure!(sink["ups"] == 1 && sink["state"] == "Established", "{sink}");
    Ok(())
}
