//! Rows and experiments in virtual time, by treatment.

use super::{Error, Place, Plan};
use crate::gateway::engine::Engine;
use crate::gateway::outcome::{Experiment, Fairness, Outcome, RowOutcome, SCHEMA};
use crate::gateway::rows::{Load, Row};
use crate::gateway::stop::Stop;
use crate::gateway::targets::targets;
use crate::gateway::treatment::{Link, Treatment};
use crate::report::MachineInfo;

fn plan(treatment: Treatment) -> Plan {
    Plan {
        place: Place::Model,
        link: Link::default(),
        treatment,
        seconds: 20,
        engine: Engine::User,
        settle: 0,
        seed: 1,
        stop: Stop::default(),
    }
}

#[test]
fn a_flood_is_lost_on_who_suffers_from_it_unless_the_policy_is_fair() {
    let plan = plan(Treatment::Fair);
    let open = plan.probe(Row::ALL[4]).expect("row 5");
    assert!(open.loss_percent >= 50.0, "{}", open.loss_percent);
    let fair = plan.probe(Row::ALL[5]).expect("row 6");
    assert_eq!(fair.loss_percent, 0.0);
    assert_eq!(fair.ping_loss_percent(), 0.0);
    let (share, _) = plan.share(Load::Flood, 3, true).expect("a share");
    assert!((0.45..=0.55).contains(&share), "{share}");
}

#[test]
fn nine_connections_outweigh_one_unless_hosts_are_served_alike() {
    let jain = |treatment: Treatment| {
        let (share, _) = plan(treatment).share(Load::Bulk, 9, true).expect("a share");
        Fairness::new("user", String::new(), vec![share]).jain[0]
    };
    assert!(jain(Treatment::Fair) >= 0.99);
    for by_flow in [Treatment::Sfq, Treatment::FqCodel] {
        assert!(jain(by_flow) < 0.7);
    }
}

#[test]
fn what_is_stopped_before_it_began_is_not_told() {
    let plan = plan(Treatment::Fair);
    plan.stop.set();
    assert!(matches!(plan.probe(Row::ALL[3]), Err(Error::Stopped)));
    let share = plan.share(Load::Bulk, 3, true);
    assert!(matches!(share, Err(Error::Stopped)));
}

/// A percentile of one stream of one setting, in milliseconds.
fn percentile(p: f64, experiment: &Experiment, setting: usize, stream: usize) -> f64 {
    let stream = &experiment.settings[setting].streams[stream];
    assert_eq!(stream.pings.len(), 200);
    stream.percentile_ms(p).expect("replies")
}

fn p99(experiment: &Experiment, setting: usize, stream: usize) -> f64 {
    percentile(0.99, experiment, setting, stream)
}

fn median(experiment: &Experiment, setting: usize, stream: usize) -> f64 {
    percentile(0.5, experiment, setting, stream)
}

#[test]
fn a_ping_waits_behind_an_upload_in_its_tunnel_until_queues_see_into_it() {
    let tunnel = plan(Treatment::Fair).tunnel().expect("the experiment");
    assert!(p99(&tunnel, 0, 0) > 200.0);
    assert!(p99(&tunnel, 1, 0) < 60.0);
}

#[test]
fn ecn_bits_choose_no_band_and_expedited_forwarding_goes_first_as_dscp() {
    let bands = plan(Treatment::Fair).bands().expect("the experiment");
    for reading in 0..2 {
        // 0x00 and 0x02 differ only in ECN bits, so their waits are similar. They are not equal,
        // since the pings are sent at different times.
        let [default, capable] = [0, 1].map(|stream| median(&bands, reading, stream));
        assert!(
            (default - capable).abs() < 0.1 * default,
            "{default} {capable}"
        );
    }
    assert!(p99(&bands, 0, 3) > 200.0);
    assert!(p99(&bands, 1, 3) < 60.0);
}

#[test]
fn a_change_of_the_hash_spikes_pings_unless_flows_in_a_bucket_stay_apart() {
    let perturb = plan(Treatment::Fair).perturb().expect("the experiment");
    let worst = |setting| {
        (0..3)
            .map(|stream| p99(&perturb, setting, stream))
            .fold(0.0, f64::max)
    };
    assert!(worst(0) > 200.0, "{}", worst(0));
    assert!(worst(2) < 60.0, "{}", worst(2));
}

#[test]
fn the_file_has_its_version_and_what_is_not_measured_is_no_target_missed() {
    let plan = Plan {
        seconds: 2,
        ..plan(Treatment::None)
    };
    let mut row = RowOutcome::new(Row::ALL[0], "user");
    row.runs.push(plan.probe(Row::ALL[0]).expect("row 1"));
    let outcome = Outcome {
        schema: SCHEMA,
        kind: "headend-home-gateway",
        place: "virtual time",
        link: plan.link,
        treatment: plan.treatment.name().to_owned(),
        engines: Vec::new(),
        browser: None,
        seconds: plan.seconds,
        seed: plan.seed,
        interrupted: false,
        cut_short: None,
        rows: vec![row],
        fairness: Vec::new(),
        experiments: Vec::new(),
        method: Vec::new(),
        machine: MachineInfo::read(),
    };
    let json: serde_json::Value = serde_json::from_str(&outcome.to_json()).expect("JSON");
    assert_eq!(
        (&json["schema"], &json["link"]["fifo_packets"]),
        (&SCHEMA.into(), &100.into())
    );
    assert_eq!(json["rows"][0]["number"], 1);
    assert_eq!(
        json["rows"][0]["runs"][0]["pings"].as_array().map(Vec::len),
        Some(20)
    );
    assert_eq!(outcome.pings_csv().lines().count(), 21);
    assert!(
        targets(&outcome)
            .iter()
            .all(|target| target.reached.is_none())
    );
}
