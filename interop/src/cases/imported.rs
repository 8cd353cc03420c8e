//! A daemon with its own configuration, then headend with what `headend import` makes of that: a third router, which has a
//! session with each in turn, sees the same neighbour, the same prefixes and the same attributes.

use super::bgp::SOON;
use crate::bgp::{Kind, OUR_ASN, Router, Setup, THEIR_ASN};
use crate::headend::{Headend, secret_key};
use crate::net::{LAC, LNS};
use crate::process::until;
use crate::runner::Bench;
use crate::xl2tpd::{self, VERBOSE, Xl2tpd, lns_section};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a path carries; the rest of a row is the observer's own decision.
const ATTRIBUTES: [&str; 8] = [
    "next_hop",
    "as_path",
    "origin",
    "med",
    "local_pref",
    "communities",
    "ext_communities",
    "large_communities",
];

/// The prefix whose attributes a policy for export sets, in each of the three configurations.
const TAGGED: &str = "198.51.100.0/24";

/// FRR's: a prefix list for import, a route-map for export.
pub(crate) fn from_frr(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        is_passive: false,
        is_plain: true,
        family: "prefix-list few in\nroute-map tag out",
        file: "ip prefix-list few permit 203.0.113.0/24\nip prefix-list own permit 198.51.100.0/24\n\
               route-map tag permit 10\n match ip address prefix-list own\n set metric 77\n set community 65001:1 65001:2\n \
               set extcommunity rt 65001:3\n set large-community 65001:4:5\n set as-path prepend 65001\n\
               route-map tag permit 20\n set ipv6 next-hop global fd09::1\n",
        ..Setup::default()
    };
    compare(bench, Kind::Frr, &setup, "")
}

/// BIRD's: a filter for export.
pub(crate) fn from_bird(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        is_passive: false,
        is_plain: true,
        file: "filter marked {\n if net ~ [ 198.51.100.0/24 ] then {\n bgp_med = 77;\n bgp_community.add((65001,1));\n \
               bgp_community.add((65001,2));\n bgp_large_community.add((65001,4,5));\n bgp_path.prepend(65001);\n accept;\n }\n accept;\n}\n",
        export: "export filter marked;",
        ..Setup::default()
    };
    compare(bench, Kind::Bird, &setup, "")
}

/// GoBGP's: a policy for import, another for export.
pub(crate) fn from_gobgp(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        is_passive: false,
        is_plain: true,
        file: r#"
[global.apply-policy.config]
import-policy-list = ["few"]
export-policy-list = ["tag"]
[[defined-sets.prefix-sets]]
prefix-set-name = "own"
[[defined-sets.prefix-sets.prefix-list]]
ip-prefix = "198.51.100.0/24"
masklength-range = "24..32"
[[defined-sets.prefix-sets]]
prefix-set-name = "other"
[[defined-sets.prefix-sets.prefix-list]]
ip-prefix = "192.0.2.0/25"
[[policy-definitions]]
name = "few"
[[policy-definitions.statements]]
name = "few-1"
[policy-definitions.statements.conditions.match-prefix-set]
prefix-set = "other"
[policy-definitions.statements.actions]
route-disposition = "reject-route"
[[policy-definitions]]
name = "tag"
[[policy-definitions.statements]]
name = "tag-1"
[policy-definitions.statements.conditions.match-prefix-set]
prefix-set = "own"
[policy-definitions.statements.actions.bgp-actions]
set-med = 77
[policy-definitions.statements.actions.bgp-actions.set-community]
options = "add"
[policy-definitions.statements.actions.bgp-actions.set-community.set-community-method]
communities-list = ["65001:1", "65001:2"]
[[policy-definitions.statements]]
name = "tag-2"
[policy-definitions.statements.conditions.match-prefix-set]
prefix-set = "own"
[policy-definitions.statements.actions]
route-disposition = "accept-route"
[policy-definitions.statements.actions.bgp-actions.set-large-community]
options = "add"
[policy-definitions.statements.actions.bgp-actions.set-large-community.set-large-community-method]
communities-list = ["65001:4:5"]
[policy-definitions.statements.actions.bgp-actions.set-as-path-prepend]
as = "65001"
repeat-n = 1
[[policy-definitions.statements]]
name = "tag-3"
[policy-definitions.statements.conditions.bgp-conditions]
afi-safi-in-list = ["ipv6-unicast"]
[policy-definitions.statements.actions.bgp-actions]
set-next-hop = "fd09::1"
"#,
        ..Setup::default()
    };
    // The daemon has these from its command line.
    let networks = "networks = [\"198.51.100.0/24\", \"192.0.2.128/25\", \"2001:db8:1::/48\"]\n";
    compare(bench, Kind::Gobgp, &setup, networks)
}

/// xl2tpd's LNS: our LAC has a tunnel and a session with each in turn, and both refuse a LAC with another secret. There
/// is no PPP in the kernel, so xl2tpd's sessions carry nothing.
pub(crate) fn from_xl2tpd(bench: &Bench<'_>) -> Result<()> {
    let setup = xl2tpd::Setup {
        name: "xl2tpd",
        address: LNS,
        secret: Some("lantern"),
        global: VERBOSE,
        sections: format!("{}tunnel rws = 8\n", lns_section(true)),
    };
    let namespace = &bench.wire.lns;
    let lac = Headend::lac(bench, &secret_key(Some("lantern")))?;
    let daemon = Xl2tpd::start(namespace, &bench.directory, &setup)?;
    let theirs = called(&lac)?;
    daemon.process.stop()?;
    let file = bench.directory.join("xl2tpd.conf");
    let imported = Headend::imported(bench, namespace, "xl2tpd", &file, "")?;
    let ours = called(&lac)?;
    ensure!(
        theirs == ours,
        "the daemon: {theirs:#?}; headend: {ours:#?}"
    );
    ensure!(
        ours["host_name"] == "xl2tpd.test" && ours["window"] == 8,
        "{ours:?}"
    );
    lac.stop()?;
    let other = Headend::lac(bench, &secret_key(Some("candle")))?;
    let refused = other.verb(&CALL);
    ensure!(refused.is_err(), "a LAC with another secret has a tunnel");
    other.stop()?;
    imported.stop()
}

/// Opens a tunnel.
const CALL: [&str; 6] = ["tunnel", "create", "--peer", "10.9.0.2", "--version", "2"];

/// Opens a tunnel and a session, ends them, and returns what the LAC knew about the LNS.
fn called(lac: &Headend) -> Result<BTreeMap<&'static str, Value>> {
    lac.verb(&CALL)?;
    let tunnel = lac.wait_for("tunnels", "established", 1, SOON)?.remove(0);
    let id = tunnel["id"].to_string();
    lac.verb(&["session", "create", "--tunnel", &id])?;
    lac.wait_for("sessions", "established", 1, SOON)?;
    lac.verb(&["tunnel", "delete", &id])?;
    lac.wait_for("tunnels", "established", 0, SOON)?;
    let known = ["host_name", "version", "peer", "window"];
    Ok(known.map(|name| (name, tunnel[name].clone())).into())
}

/// What the observer sees of a neighbour.
#[derive(Debug, PartialEq)]
struct Seen {
    asn: u64,
    hold_time_s: u64,
    /// The attributes of each prefix.
    paths: BTreeMap<String, BTreeMap<&'static str, Value>>,
}

/// `more` are lines for `[bgp]` of the imported configuration.
fn compare(bench: &Bench<'_>, kind: Kind, setup: &Setup<'_>, more: &str) -> Result<()> {
    let observer = Headend::speaker(
        bench,
        &format!(
            "[bgp]\nasn = {OUR_ASN}\nrouter_id = \"10.9.0.2\"\nlisten = [\"10.9.0.2:179\"]\nnetworks = [\"203.0.113.0/24\", \"192.0.2.0/25\"]\n\
             families = [\"ipv4\", \"ipv6\"]\nconnect_retry_s = 1\nidle_hold_s = 0.1\ndamp_oscillations = false\nimport = \"accept\"\nexport = \"accept\"\n\
             [[bgp.neighbor]]\naddress = \"{LAC}\"\nremote_asn = {THEIR_ASN}\ngraceful_restart = false\n"
        ),
    )?;
    let router = Router::start(bench, kind, setup)?;
    let theirs = seen(&observer)?;
    router.process.stop()?;
    observer.neighbor_is(LAC, SOON, |row| row["state"] != "Established")?;
    let file = bench.directory.join(format!("{}.conf", kind.name()));
    let imported = Headend::imported(bench, &bench.wire.lac, kind.name(), &file, more)?;
    let ours = seen(&observer)?;
    ensure!(
        theirs == ours,
        "the daemon: {theirs:#?}; headend: {ours:#?}"
    );
    let tagged = &ours.paths[TAGGED];
    ensure!(
        tagged["med"] == 77
            && tagged["communities"]
                .as_array()
                .is_some_and(|all| all.len() == 2),
        "no policy for export has acted: {tagged:?}"
    );
    imported.stop()?;
    observer.stop()
}

/// Waits for the session and for three prefixes, and returns what the neighbour is like.
fn seen(observer: &Headend) -> Result<Seen> {
    let row = observer.established(LAC)?;
    let mut paths = BTreeMap::new();
    let found = until(SOON, || {
        let rows = observer.show(&["bgp", "route", "--received", LAC])?;
        paths.clear();
        for prefix in rows.iter().filter_map(|row| row["prefix"].as_str()) {
            let rows = observer.show(&["bgp", "route", prefix])?;
            let Some(path) = rows.iter().find(|row| row["peer"] == LAC) else {
                return Ok(None);
            };
            let mut attributes = BTreeMap::from(ATTRIBUTES.map(|name| (name, path[name].clone())));
            // FRR gives its own networks a MED of 0, which the page of the import says.
            if attributes["med"] == 0 {
                attributes.insert("med", Value::Null);
            }
            paths.insert(prefix.to_owned(), attributes);
        }
        Ok((paths.len() == 3).then_some(()))
    })?;
    found.with_context(|| format!("not three prefixes: {paths:?}; {row}"))?;
    Ok(Seen {
        asn: row["asn"].as_u64().context("an AS")?,
        hold_time_s: row["hold_time_s"].as_u64().context("a hold time")?,
        paths,
    })
}
