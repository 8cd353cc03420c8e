//! Whole runs: which routes routers end with, and that the same seed gives the same run.

use std::collections::VecDeque;

use base::Duration;
use emulate::topology::{Relation, Topology};
use emulate::{Emulation, Recording, Results, Scenario};
use wire::bgp::attr;

fn load(text: &str) -> Scenario {
    Scenario::load(text, "test.toml").unwrap_or_else(|faults| panic!("{faults}"))
}

fn run(text: &str) -> Results {
    let mut emulation = Emulation::new(load(text));
    emulation.run();
    emulation.finish()
}

/// A graph of 120 networks; as100 announces its prefix at 2 s.
fn graph(seed: u64, more: &str) -> String {
    format!(
        "seed = {seed}\nrun_s = 60\nstop_when_quiet_s = 3\n[topology]\nkind = \"random\"\nrouters = 120\n{more}\n\
         [links]\ndelay_ms = 20\njitter_ms = 10\n[[event]]\nkind = \"announce\"\nat_s = 2\nrouter = \"as100\"\n"
    )
}

#[test]
fn a_run_is_that_of_its_seed() {
    let flaps = "[[event]]\nkind = \"flap\"\nat_s = 4\nrouter = \"random:stub\"\nmany = 5\ntimes = 3\nspread_s = 1\n";
    let json = |seed| run(&format!("{}{flaps}", graph(seed, ""))).to_json();
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
}

#[test]
fn a_full_mesh_at_one_and_three_seconds_keeps_every_session() {
    let results = run(
        "run_s = 20\n[topology]\nkind = \"mesh\"\nrouters = 30\n[routers]\nhold_time_s = 3\nkeepalive_s = 1\n\
         [links]\ndelay_ms = 1\n",
    );
    assert_eq!((results.endpoints_up, results.sessions_lost), (870, 0));
    // An OPEN, the end of an empty table, and a KEEPALIVE a second.
    assert!(
        results.messages > 870 * 19 && results.messages < 870 * 25,
        "{}",
        results.messages
    );
}

/// Class and length of each router's best route to `owner` by Gao and Rexford's preferences: routes
/// from customers first, then from peers, then from providers, each by the shortest path.
fn stable_state(topology: &Topology, owner: u32) -> Vec<Option<(u8, usize)>> {
    let routers = topology.routers.len();
    let mut sides = vec![Vec::new(); routers];
    for link in &topology.links {
        sides[link.a as usize].push((link.b as usize, link.relation));
        sides[link.b as usize].push((link.a as usize, link.relation.reversed()));
    }
    let mut best: Vec<Option<(u8, usize)>> = vec![None; routers];
    best[owner as usize] = Some((0, 0));
    let mut queue = VecDeque::from([owner as usize]);
    while let Some(at) = queue.pop_front() {
        let length = best[at].expect("it was reached").1;
        for &(up, relation) in &sides[at] {
            if relation == Relation::Provider && best[up].is_none() {
                best[up] = Some((1, length + 1));
                queue.push_back(up);
            }
        }
    }
    let by_customers = best.clone();
    for at in 0..routers {
        let over = sides[at]
            .iter()
            .filter(|(_, relation)| *relation == Relation::Peer);
        let lengths = over.filter_map(|&(peer, _)| Some(by_customers[peer]?.1 + 1));
        if best[at].is_none() {
            best[at] = lengths.min().map(|length| (2, length));
        }
    }
    // Next come routes from providers, the shortest first: a provider advertises its best route,
    // whatever its class.
    let mut done = vec![false; routers];
    loop {
        let next = (0..routers)
            .filter(|&at| !done[at])
            .filter_map(|at| Some((best[at]?.1, at)));
        let Some((length, at)) = next.min() else {
            return best;
        };
        done[at] = true;
        for &(down, relation) in &sides[at] {
            let is_better = match best[down] {
                None => true,
                Some((class, old)) => class == 3 && length + 1 < old,
            };
            if relation == Relation::Customer && is_better {
                best[down] = Some((3, length + 1));
            }
        }
    }
}

#[test]
fn routers_agree_with_a_plain_computation_of_the_stable_state() {
    for seed in 1..=20 {
        let scenario = load(&graph(seed, ""));
        let owner = scenario.topology.find("as100").unwrap();
        let expected = stable_state(&scenario.topology, owner);
        let mut emulation = Emulation::new(scenario);
        emulation.run();
        for (router, expected) in emulation.scenario().topology.routers.iter().zip(expected) {
            let rib = emulation.router(&router.name).unwrap().rib();
            let found = rib.best(Topology::own_prefix(owner)).map(|best| {
                let attributes = best.attributes.unwrap();
                let class = match attr::local_pref(attributes) {
                    Some(300) => 1,
                    Some(200) => 2,
                    Some(100) => 3,
                    _ => 0,
                };
                (class, attr::as_path(attributes).length())
            });
            assert_eq!(found, expected, "seed {seed}, {}", router.name);
        }
    }
}

#[test]
fn a_longer_prefix_takes_all_whom_origin_validation_does_not_save() {
    let hijack = "[[event]]\nkind = \"hijack\"\nat_s = 5\nvictim = \"as100\"\nrouter = \"as110\"\nsub_prefix = 25\n";
    let deceived = |more: &str, forged: &str| {
        let results = run(&format!("{}{hijack}{forged}", graph(1, more)));
        let last = *results.addresses[0].shares.last().unwrap();
        assert!((last.owner + last.deceived - 1.0).abs() < 1e-9, "{last:?}");
        last.deceived
    };
    assert_eq!(deceived("", ""), 1.0);
    // Then only the hijacker itself uses the hijacked route.
    assert_eq!(deceived("[routers]\nrov_share = 1.0", ""), 1.0 / 120.0);
    let half = deceived("[routers]\nrov_share = 0.5", "");
    assert!(half > 1.0 / 120.0 && half < 0.5, "{half}");
    // An authorisation covers only the whole prefix, so a forged origin does not make a more
    // specific prefix valid.
    let forged = deceived("[routers]\nrov_share = 1.0", "forged_origin = true\n");
    assert_eq!(forged, 1.0 / 120.0);
}

#[test]
fn a_forged_origin_passes_origin_validation() {
    let hijack = "[[event]]\nkind = \"hijack\"\nat_s = 5\nvictim = \"as100\"\nrouter = \"as10\"\n";
    let deceived = |forged: &str| {
        let text = format!("{}{hijack}{forged}", graph(1, "[routers]\nrov_share = 1.0"));
        run(&text).addresses[0].deceived_max
    };
    assert_eq!(deceived(""), 1.0 / 120.0);
    assert!(deceived("forged_origin = true\n") > 2.0 / 120.0);
}

#[test]
fn a_hijack_that_ends_leaves_nobody_deceived() {
    let hijack = "[[event]]\nkind = \"hijack\"\nat_s = 5\nvictim = \"as100\"\nrouter = \"as110\"\nlasts_s = 5\n";
    let results = run(&format!("{}{hijack}", graph(3, "")));
    let address = &results.addresses[0];
    assert!(address.deceived_max > 0.0);
    let last = address.shares.last().unwrap();
    assert_eq!((last.owner, last.deceived), (1.0, 0.0));
    let kinds: Vec<&str> = results.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["start", "announce", "hijack", "hijack"]);
    assert!(results.events[3].label.ends_with("(end)"));
}

/// Two top networks with a customer each, and one network between them that should carry nothing.
fn two_sides(roles: &str) -> String {
    let mut text = String::from("run_s = 60\nstop_when_quiet_s = 3\n");
    text.push_str(&format!("[routers]\nroles_share = {roles}\n"));
    for (name, asn) in [("left", 1), ("right", 2), ("owner", 3), ("between", 4)] {
        text.push_str(&format!("[[router]]\nname = \"{name}\"\nasn = {asn}\n"));
    }
    for (a, b, relation) in [
        ("left", "right", "peer"),
        ("left", "owner", "customer"),
        ("left", "between", "customer"),
        ("right", "between", "customer"),
    ] {
        text.push_str(&format!(
            "[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrelation = \"{relation}\"\n"
        ));
    }
    text.push_str("[[event]]\nkind = \"announce\"\nat_s = 2\nrouter = \"owner\"\n");
    text.push_str("[[event]]\nkind = \"leak\"\nat_s = 5\nrouter = \"between\"\n");
    text
}

#[test]
fn outcomes_name_who_believed_what_and_when() {
    let results = run(&two_sides("0.0"));
    let csv = results.outcomes_csv();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let head = "address router at_s leads_to prefix next_hop origin path";
    assert_eq!(rows[0], head.split(' ').collect::<Vec<_>>());
    let of = |router: &str| -> Vec<&[&str]> {
        let its = rows.iter().filter(|row| row[1] == router);
        its.map(|row| &row[3..]).collect()
    };
    let prefix = "16.0.2.0/24";
    assert_eq!(of("owner"), [["owner", prefix, "", "3", ""]]);
    assert_eq!(of("left"), [["owner", prefix, "owner", "3", "3"]]);
    // It learns of the route from its peer, then prefers its customer's leak.
    let expected = [
        ["owner", prefix, "left", "3", "1 3"],
        ["deceived", prefix, "between", "3", "4 1 3"],
    ];
    assert_eq!(of("right"), expected);
    let times: Vec<f64> = rows[1..]
        .iter()
        .map(|row| row[2].parse().unwrap())
        .collect();
    assert!(times.is_sorted() && times[0] == 2.0, "{times:?}");
    assert_eq!(results.outcomes_left_out, 0);
}

#[test]
fn a_leak_draws_a_provider_until_somebody_has_roles() {
    // The right top network prefers the route its customer leaks to the route from its peer.
    assert_eq!(run(&two_sides("0.0")).addresses[0].deceived_max, 0.25);
    assert_eq!(run(&two_sides("1.0")).addresses[0].deceived_max, 0.0);
}

#[test]
fn a_leaker_without_roles_is_stopped_by_those_who_have_them() {
    let roles: String = ["left", "right"]
        .map(|name| format!("[[router]]\nname = \"{name}\"\nroles = true\n"))
        .concat();
    let text = two_sides("0.0").replacen("[[event]]", &format!("{roles}[[event]]"), 1);
    assert_eq!(run(&text).addresses[0].deceived_max, 0.0);
}

/// A ring of five; r1 announces, then `event` takes place at 5 s.
fn ring(event: &str) -> String {
    format!(
        "run_s = 40\n[topology]\nkind = \"ring\"\nrouters = 5\n[routers]\nhold_time_s = 3\nkeepalive_s = 1\n\
         [[event]]\nkind = \"announce\"\nat_s = 2\nrouter = \"r1\"\n[[event]]\nat_s = 5\n{event}\n"
    )
}

#[test]
fn routes_go_the_other_way_round_when_a_link_fails() {
    let results = run(&ring("kind = \"link_failure\"\nbetween = [\"r1\", \"r2\"]"));
    assert_eq!((results.endpoints_up, results.sessions_lost), (8, 2));
    assert_eq!(results.addresses[0].path_lengths, [1, 1, 1, 1, 1]);
    assert!(results.events[2].convergence_s.unwrap() < 1.0);
}

#[test]
fn a_silent_failure_is_noticed_by_the_hold_timer() {
    let quiet = ring("kind = \"link_failure\"\nbetween = [\"r1\", \"r2\"]");
    let quiet = quiet.replace(
        "[[event]]\nkind = \"announce\"",
        "[links]\ndetection = \"hold_timer\"\n[[event]]\nkind = \"announce\"",
    );
    let results = run(&quiet);
    assert_eq!(results.sessions_lost, 2);
    let after_s = results.events[2].convergence_s.unwrap();
    assert!((2.0..=3.2).contains(&after_s), "{after_s}");
}

#[test]
fn what_fails_and_comes_back_has_its_routes_again() {
    for event in [
        "kind = \"link_failure\"\nbetween = [\"r1\", \"r2\"]\nlasts_s = 5",
        "kind = \"router_failure\"\nrouter = \"r3\"\nlasts_s = 5",
        "kind = \"reset\"\nbetween = [\"r1\", \"r2\"]",
    ] {
        let results = run(&ring(event));
        assert_eq!(results.endpoints_up, 10, "{event}");
        assert!(results.sessions_lost >= 2, "{event}");
        assert_eq!(results.addresses[0].path_lengths, [1, 2, 2], "{event}");
    }
}

/// The ring with `stop_when_quiet_s`, and more keys in `[routers]`.
fn quiet_ring(quiet_s: f64, routers: &str, event: &str) -> Results {
    let start = format!("stop_when_quiet_s = {quiet_s}\nrun_s =");
    let text = ring(event).replacen("run_s =", &start, 1);
    let text = text.replace("hold_time_s = 3\nkeepalive_s = 1\n", routers);
    run(&text.replace("run_s = 40", "run_s = 400"))
}

#[test]
fn a_run_is_not_quiet_while_a_session_is_under_repair() {
    for event in [
        "kind = \"link_failure\"\nbetween = [\"r1\", \"r2\"]\nlasts_s = 5",
        "kind = \"router_failure\"\nrouter = \"r3\"\nlasts_s = 5",
        "kind = \"reset\"\nbetween = [\"r1\", \"r2\"]",
    ] {
        let results = quiet_ring(0.5, "connect_retry_s = 60\n", event);
        assert_eq!(results.endpoints_up, 10, "{event}");
        assert!(results.end_s < 200.0, "{event}: {} s", results.end_s);
    }
}

#[test]
fn a_run_is_not_quiet_before_a_silent_failure_is_noticed() {
    let event =
        "kind = \"link_failure\"\nbetween = [\"r1\", \"r2\"]\n[links]\ndetection = \"hold_timer\"";
    let results = quiet_ring(2.0, "hold_time_s = 30\n", event);
    assert_eq!((results.endpoints_up, results.sessions_lost), (8, 2));
    assert!((20.0..60.0).contains(&results.end_s), "{}", results.end_s);
}

#[test]
fn a_run_is_not_quiet_while_routes_are_held_back_or_in_flight() {
    let withdraw = "kind = \"withdraw\"\nrouter = \"r1\"";
    // A withdrawal 3 s after the announcement has to wait for the timer at each router.
    let held_back = quiet_ring(0.5, "mrai_s = 30\n", withdraw);
    // At 100 bytes per second an UPDATE takes longer than the run has to be quiet.
    let slow = format!("{withdraw}\n[links]\nrate_mbps = 0.0008");
    let in_flight = quiet_ring(0.1, "", &slow);
    for results in [held_back, in_flight] {
        let last = results.addresses[0].shares.last().unwrap();
        assert_eq!(last.without, 1.0);
        assert!(results.end_s < 200.0, "{} s", results.end_s);
    }
}

#[test]
fn a_malformed_update_costs_its_route_or_the_session_as_rfc_7606_says() {
    for (what, lost) in [
        ("origin", 0),
        ("as_path", 0),
        ("missing", 0),
        ("flags", 0),
        ("nlri", 2),
        ("attributes_length", 2),
    ] {
        let event =
            format!("kind = \"malformed\"\nrouter = \"r1\"\nneighbour = \"r2\"\nwhat = \"{what}\"");
        let results = run(&ring(&event));
        assert_eq!(
            (results.malformed, results.sessions_lost),
            (1, lost),
            "{what}"
        );
        assert_eq!(results.endpoints_up, 10, "{what}");
    }
}

#[test]
fn sessions_over_links_that_break_come_back() {
    let text = ring("kind = \"withdraw\"\nrouter = \"r1\"").replace(
        "[[event]]\nkind = \"announce\"",
        "[links]\nmean_life_s = 20\n[[event]]\nkind = \"announce\"",
    );
    let results = run(&text);
    assert!(results.sessions_lost > 0);
    assert_eq!(results.sessions_lost % 2, 0);
}

#[test]
fn a_recording_runs_again_with_what_was_injected() {
    let mut emulation = Emulation::new(load(&graph(5, "")));
    emulation.run_until(Duration::from_millis(3_500));
    emulation
        .inject("kind = \"hijack\"\nvictim = \"as100\"\nrouter = \"random:stub\"")
        .unwrap();
    emulation.step(100);
    emulation
        .inject("kind = \"reset\"\nbetween = [\"random\"]")
        .unwrap();
    emulation.run();
    let recording = Recording::from_json(&emulation.recording().to_json()).unwrap();
    let results = emulation.finish();
    assert!(results.events.iter().any(|event| event.kind == "hijack"));
    let again = Emulation::replay(&recording).unwrap().finish();
    assert_eq!(again.to_json(), results.to_json());
}

#[test]
fn a_rate_puts_a_message_behind_those_before_it() {
    let text = ring("kind = \"withdraw\"\nrouter = \"r1\"").replace(
        "[[event]]\nkind = \"announce\"",
        "[links]\nrate_mbps = 0.0008\ndelay_ms = 1\n[[event]]\nkind = \"announce\"",
    );
    // At 100 bytes per second, an UPDATE of some 60 bytes takes about half a second to leave.
    let results = run(&text);
    let announced_s = results.events[1].convergence_s.unwrap();
    assert!(announced_s > 0.4, "{announced_s}");
}

#[test]
fn a_table_is_written_and_replayed() {
    let mut emulation = Emulation::new(load(
        "run_s = 10\n[topology]\nkind = \"ring\"\nrouters = 4\n[routers]\noriginate = true\n",
    ));
    emulation.run();
    let mut octets = Vec::new();
    emulation.write_mrt("r1", &mut octets).unwrap();
    assert!(emulation.write_mrt("r9", Vec::new()).is_err());
    let folder = std::env::temp_dir().join(format!("emulate-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("table.mrt");
    std::fs::write(&file, octets).unwrap();
    let text = "run_s = 10\n[topology]\nkind = \"random\"\nrouters = 30\n[[event]]\nkind = \"replay\"\nat_s = 2\n\
                router = \"as29\"\nfile = \"table.mrt\"\n";
    let name = folder.join("s.toml").display().to_string();
    let mut emulation = Emulation::new(Scenario::load(text, &name).unwrap());
    emulation.run();
    std::fs::remove_dir_all(&folder).unwrap();
    for prefix in (0..4).map(Topology::own_prefix) {
        let best = emulation
            .router("as1")
            .unwrap()
            .rib()
            .best(prefix)
            .is_some();
        assert!(best, "{prefix}");
    }
}

#[test]
fn every_scenario_of_the_documentation_loads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/emulate");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            load(&std::fs::read_to_string(&path).unwrap());
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}
