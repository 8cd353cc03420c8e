//! A session with each daemon, dialled by them and by us: the negotiated options, and routes of both families
//! with all their attributes, in both directions.

use super::bgp::{SOON, has_all, settings};
use crate::bgp::{Kind, Router, Setup};
use crate::headend::Headend;
use crate::net::LAC;
use crate::runner::Bench;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// FRR's.
pub(crate) fn with_frr(bench: &Bench<'_>) -> Result<()> {
    let capabilities = [
        "four-octet-as",
        "route-refresh",
        "extended-messages",
        "graceful-restart",
    ];
    both_ways(
        bench,
        Kind::Frr,
        &Setup::default(),
        "",
        &capabilities,
        frr_sees_ours,
    )
}

/// BIRD, which also supports roles.
pub(crate) fn with_bird(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        session: "enable extended messages; local role customer;",
        family: "add paths;",
        ..Setup::default()
    };
    let ours = "role = \"provider\"\nadd_path_receive = [\"ipv4\", \"ipv6\"]\nadd_path_send = [\"ipv4\", \"ipv6\"]\n";
    let capabilities = [
        "four-octet-as",
        "route-refresh",
        "extended-messages",
        "add-path-in",
        "add-path-out",
        "graceful-restart",
    ];
    both_ways(
        bench,
        Kind::Bird,
        &setup,
        ours,
        &capabilities,
        bird_sees_ours,
    )
}

/// GoBGP's.
pub(crate) fn with_gobgp(bench: &Bench<'_>) -> Result<()> {
    let setup = Setup {
        family: "[neighbors.afi-safis.add-paths.config]\nreceive = true\nsend-max = 4\n",
        ..Setup::default()
    };
    let ours = "add_path_receive = [\"ipv4\", \"ipv6\"]\nadd_path_send = [\"ipv4\", \"ipv6\"]\n";
    let capabilities = [
        "four-octet-as",
        "route-refresh",
        "add-path-in",
        "add-path-out",
    ];
    both_ways(
        bench,
        Kind::Gobgp,
        &setup,
        ours,
        &capabilities,
        gobgp_sees_ours,
    )
}

fn both_ways(
    bench: &Bench<'_>,
    kind: Kind,
    setup: &Setup<'_>,
    ours: &str,
    capabilities: &[&str],
    sees_ours: fn(&Router<'_>) -> Result<()>,
) -> Result<()> {
    for we_dial in [true, false] {
        let setup = Setup {
            is_passive: we_dial,
            ..*setup
        };
        let peer = Router::start(bench, kind, &setup)?;
        let keys = format!("passive = {}\n{ours}", !we_dial);
        let us = Headend::speaker(bench, &settings("", &keys, ""))?;
        let row = us.established(LAC)?;
        ensure!(row["outgoing"] == we_dial, "who dialled? {row}");
        ensure!(row["families"] == json!(["ipv4", "ipv6"]), "{row}");
        ensure!(row["capabilities"] == json!(capabilities), "{row}");
        ensure!(row["hold_time_s"] == 3 && row["router_id"] == LAC, "{row}");
        for (prefix, next_hop) in [("198.51.100.0/24", LAC), ("2001:db8:1::/48", "fd09::1")] {
            we_see_theirs(&us.paths(prefix, 1)?[0], next_hop)?;
        }
        sees_ours(&peer)?;
        let row = us.neighbor(LAC)?;
        ensure!(
            row["malformed"] == 0 && row["ups"] == 1,
            "of a session without faults: {row}"
        );
        us.stop()?;
    }
    Ok(())
}

fn we_see_theirs(path: &Value, next_hop: &str) -> Result<()> {
    ensure!(
        path["best"] == true && path["peer"] == LAC && path["peer_asn"] == 65_001,
        "{path}"
    );
    ensure!(
        path["as_path"] == "65001 4200000001" && path["origin"] == "i" && path["med"] == 77,
        "{path}"
    );
    ensure!(
        path["communities"] == json!(["65001:1", "65001:2"])
            && path["ext_communities"] == json!(["RT:65001:3"])
            && path["large_communities"] == json!(["65001:4:5"]),
        "{path}"
    );
    ensure!(path["next_hop"] == next_hop, "{path}");
    Ok(())
}

/// Our path, as all of them print it.
const OUR_PATH: &str = "4200000000 4200000000 4200000000";

fn frr_sees_ours(peer: &Router<'_>) -> Result<()> {
    for (family, prefix) in [("ipv4", "203.0.113.0/24"), ("ipv6", "2001:db8:2::/48")] {
        let printed = peer.wait_for(
            &format!("show bgp {family} unicast {prefix}"),
            &[OUR_PATH],
            SOON,
        )?;
        has_all(
            &printed,
            &[
                "metric 66",
                "Origin IGP",
                "valid",
                "Community: 65010:1 65010:2",
                "Extended Community: RT:65010:3",
                "Large Community: 65010:4:5",
            ],
        )?;
    }
    let printed = peer.ask("show bgp neighbors 10.9.0.2")?;
    has_all(
        &printed,
        &[
            "BGP state = Established",
            "4 Byte AS: advertised and received",
            "Extended Message: advertised and received",
            "Route refresh: advertised and received",
            "Graceful Restart Capability: advertised and received",
            "Hold time is 3",
        ],
    )
}

fn bird_sees_ours(peer: &Router<'_>) -> Result<()> {
    for (prefix, next_hop) in [
        ("203.0.113.0/24", "10.9.0.2"),
        ("2001:db8:2::/48", "fd09::2"),
    ] {
        let printed = peer.wait_for(&format!("show route all for {prefix}"), &[OUR_PATH], SOON)?;
        has_all(
            &printed,
            &[
                "BGP.origin: IGP",
                "BGP.med: 66",
                "BGP.community: (65010,1) (65010,2)",
                "BGP.ext_community: (rt, 65010, 3)",
                "BGP.large_community: (65010, 4, 5)",
                &format!("BGP.next_hop: {next_hop}"),
            ],
        )?;
    }
    let printed = peer.ask("show protocols all headend")?;
    has_all(
        &printed,
        &[
            "Established",
            "Extended message",
            "Role: provider",
            "Hold timer",
        ],
    )
}

fn gobgp_sees_ours(peer: &Router<'_>) -> Result<()> {
    for (family, prefix) in [("ipv4", "203.0.113.0/24"), ("ipv6", "2001:db8:2::/48")] {
        let printed = peer.wait_for(
            &format!("global rib -a {family} {prefix}"),
            &[OUR_PATH],
            SOON,
        )?;
        has_all(
            &printed,
            &[
                "{Origin: i}",
                "{Med: 66}",
                "{Communities: 65010:1, 65010:2}",
                "{Extcomms: [65010:3]}",
                "LargeCommunity: [ 65010:4:5]",
            ],
        )?;
    }
    let printed = peer.ask("neighbor 10.9.0.2")?;
    has_all(&printed, &["BGP state = ESTABLISHED"])
}
