use super::*;
use crate::event::Action;
use crate::topology::Relation;

fn faults(text: &str) -> Vec<String> {
    let faults = Scenario::load(text, "s.toml").expect_err("the scenario is wrong");
    faults.lines()
}

fn load(text: &str) -> Scenario {
    Scenario::load(text, "s.toml").unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn a_cycle_of_providers_is_advised_against() {
    let folder = std::env::temp_dir().join(format!("emulate-cycle-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("as.txt"),
        "# networks\n1|2|-1\n2|3|-1\n3|1|-1\n1|4|-1\n",
    )
    .unwrap();
    let file = folder.join("s.toml").display().to_string();
    let advice = |text: &str| Scenario::load(text, &file).unwrap().advice.lines();
    let by_file = advice("[topology]\nkind = \"caida\"\nfile = \"as.txt\"\n");
    let link = "[topology]\nkind = \"caida\"\nfile = \"as.txt\"\n[[link]]\nbetween = [\"as1\", \"as3\"]\nrelation = \"peer\"\n";
    let mended = advice(link);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(by_file.len(), 1);
    let words = "as.txt: line 4 closes a cycle of 3 providers: AS1, AS2, AS3, AS1, each a provider of the next";
    assert!(by_file[0].contains(words), "{}", by_file[0]);
    assert_eq!(mended, [""; 0], "a relation of the scenario's own counts");
}

#[test]
fn a_scenario_is_read_with_what_it_leaves_out_filled_in() {
    let scenario = load(
        r#"
        title = "a hijack"
        seed = 7
        run_s = 90
        [topology]
        kind = "random"
        routers = 200
        [routers]
        hold_time_s = 90
        rov_share = 0.25
        [links]
        delay_ms = 20
        [[event]]
        at_s = 30
        kind = "announce"
        router = "as150"
        [[event]]
        between_s = [50, 60]
        kind = "hijack"
        victim = "as150"
        router = "random:stub"
        sub_prefix = 25
        "#,
    );
    assert_eq!((scenario.seed, scenario.run), (7, Duration::from_secs(90)));
    let validating = scenario
        .topology
        .routers
        .iter()
        .filter(|r| r.settings.validates);
    assert_eq!(validating.count(), 50);
    assert_eq!(scenario.authorisations.len(), 200);
    let Action::Hijack {
        router,
        victim,
        prefix,
        ..
    } = scenario.events[1].action
    else {
        panic!("it is a hijack");
    };
    assert_eq!(scenario.topology.name(victim), "as150");
    assert_ne!(router, victim);
    assert_eq!(prefix.len(), 25);
    assert!(Topology::own_prefix(victim).contains(prefix));
    let at_s = scenario.events[1].at.as_secs_f64();
    assert!((50.0..=60.0).contains(&at_s), "{at_s}");
}

#[test]
fn every_fault_is_told_with_its_line_and_key() {
    let texts = faults(
        "seed = -1\nrun_s = \"long\"\n[topology]\nkind = \"mesh\"\nrouters = 4\nfanot = 2\n[routers]\nhold_time_s = 2\n\
         [[router]]\nname = \"x*\"\n[[link]]\nbetween = [\"r1\", \"r9\"]\n[[event]]\nkind = \"announce\"\nrouter = \"r5\"\n",
    );
    let expected = [
        "s.toml:1:8: seed: -1 is out of range",
        "s.toml:2:9: run_s: is a string; it must be a number",
        "s.toml:6:1: topology.fanot: unknown key",
        "s.toml:8:15: routers.hold_time_s: must be 0 or at least 3",
        "s.toml:10:8: router[1].name: no router's name is like \"x*\"",
        "s.toml:12:18: link[1].between: there is no router \"r9\"",
        "s.toml:13:1: event[1].at_s: is missing",
        "s.toml:15:10: event[1].router: there is no router \"r5\"",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:#?}");
    for (text, start) in texts.iter().zip(expected) {
        assert!(text.starts_with(start), "{text}\n{start}");
    }
}

#[test]
fn events_are_held_against_the_topology() {
    let base = "run_s = 60\n[topology]\nkind = \"ring\"\nrouters = 4\n[[event]]\nat_s = 1\n";
    for (event, words) in [
        (
            "kind = \"explode\"",
            "event[1].kind: \"explode\" is not known",
        ),
        (
            "kind = \"reset\"\nbetween = [\"r1\", \"r3\"]",
            "there is no link between r1 and r3",
        ),
        (
            "kind = \"hijack\"\nvictim = \"r1\"\nrouter = \"r1\"",
            "event[1].router: is the victim itself",
        ),
        (
            "kind = \"hijack\"\nvictim = \"r1\"\nrouter = \"r2\"\nsub_prefix = 24",
            "must be longer than 16.0.0.0/24",
        ),
        (
            "kind = \"announce\"\nrouter = \"r1\"\nprefix = \"10.0.0.0\"",
            "is not a prefix",
        ),
        (
            "kind = \"leak\"\nrouter = \"random:top\"",
            "no router is left",
        ),
        (
            "kind = \"replay\"\nrouter = \"r1\"\nfile = \"none.gz\"",
            "none.gz",
        ),
        (
            "kind = \"malformed\"\nrouter = \"r1\"\nneighbour = \"r3\"\nwhat = \"origin\"",
            "r3 is no neighbour",
        ),
        (
            "kind = \"malformed\"\nrouter = \"r1\"\nupdate_hex = \"0x\"",
            "no hexadecimal digit",
        ),
        (
            "kind = \"flap\"\nrouter = \"r1\"\nmany = 2",
            "needs a group",
        ),
    ] {
        let texts = faults(&format!("{base}{event}\n"));
        assert!(texts[0].contains(words), "{event}: {texts:?}");
    }
    let late = faults(&format!(
        "{}kind = \"reset\"\nbetween = [\"r1\", \"r2\"]",
        base.replace("at_s = 1\n", "at_s = 61\n")
    ));
    assert!(
        late[0].contains("after the end of the run at 60 s"),
        "{late:?}"
    );
}

#[test]
fn routers_and_links_differ_by_name_and_by_pattern() {
    let scenario = load(
        r#"
        [topology]
        kind = "clos"
        leaves = 3
        spines = 2
        [[router]]
        name = "leaf*"
        hold_time_s = 3
        keepalive_s = 1
        originate = true
        [[router]]
        name = "outside"
        asn = 64999
        [[link]]
        between = ["spine1-1", "leaf*"]
        delay_ms = 50
        [[link]]
        between = ["outside", "spine1-1"]
        relation = "provider"
        jitter_ms = 1
        "#,
    );
    let topology = &scenario.topology;
    let settings = |name: &str| topology.routers[topology.find(name).unwrap() as usize].settings;
    assert_eq!(settings("leaf1-2").keepalive_s, Some(1));
    assert_eq!(settings("spine1-1").keepalive_s, None);
    let delay_ms = |a: &str, b: &str| {
        let ends = [a, b].map(|name| topology.find(name).unwrap());
        let link = topology.link_between(ends[0], ends[1]).unwrap();
        topology
            .settings_of(&topology.links[link as usize])
            .delay
            .as_millis()
    };
    assert_eq!(delay_ms("spine1-1", "leaf1-3"), 50);
    assert_eq!(delay_ms("spine1-2", "leaf1-3"), 10);
    let last = topology.links.last().unwrap();
    assert_eq!(last.relation, Relation::Provider);
}

#[test]
fn tcp_needs_the_machines_clock() {
    let text = "clock = \"virtual\"\n[topology]\nkind = \"mesh\"\nrouters = 3\n[links]\ntransport = \"tcp\"\n";
    assert!(faults(text)[0].starts_with("s.toml:1:9: clock: "));
    let scenario = load(&text.replace("virtual", "real"));
    let addresses = scenario.topology.routers.iter().map(|r| r.address);
    assert!(addresses.clone().all(|address| address.is_loopback()));
}

#[test]
fn an_event_can_be_read_alone_and_is_never_in_the_past() {
    let scenario = load("[topology]\nkind = \"ring\"\nrouters = 4\n");
    let now = Duration::from_secs(5);
    let event = scenario
        .read_event("kind = \"announce\"\nrouter = \"r1\"", now)
        .unwrap();
    assert_eq!(event.at, now);
    let early = scenario.read_event("at_s = 1\nkind = \"announce\"\nrouter = \"r1\"", now);
    assert_eq!(early.unwrap().at, now);
    let faults = scenario
        .read_event("kind = \"announce\"\nrouter = \"r9\"", now)
        .unwrap_err();
    assert!(
        faults
            .to_string()
            .starts_with("event:2:10: router: there is no router")
    );
}

#[test]
fn nothing_is_no_scenario_and_no_text_ends_in_a_panic() {
    assert!(faults("")[0].contains("has no router"));
    for text in [
        "[",
        "seed = ",
        "[[topology]]",
        "topology = 3",
        "event = [1]",
        "\u{0}",
    ] {
        assert!(Scenario::load(text, "s.toml").is_err(), "{text}");
    }
}

#[test]
fn the_first_as_is_enforced_unless_a_router_says_otherwise() {
    let scenario = load(
        "[topology]\nkind = \"mesh\"\nrouters = 3\n[[router]]\nname = \"r2\"\nenforce_first_as = false\n",
    );
    let enforces = |at: usize| scenario.topology.routers[at].settings.enforces_first_as;
    assert_eq!([0, 1, 2].map(enforces), [true, false, true]);
}
