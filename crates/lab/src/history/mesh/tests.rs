use super::super::Outcome;
use super::*;

fn row(waiting: Waiting, routers: u64, each_us: f64) -> MeshRow {
    let endpoints = routers * (routers - 1);
    MeshRow {
        waiting,
        routers,
        up: endpoints,
        lost: 0,
        cpu_percent: each_us * endpoints as f64 / 1e4,
        waits: Some((routers - 1) as f64),
    }
}

/// Synthetic meshes that behave as published; the largest one with poll exceeds the machine.
fn as_published() -> Vec<MeshRow> {
    let mut rows = Vec::new();
    for routers in [32, 64, 128, 256] {
        rows.push(row(Waiting::Poll, routers, 60.0));
        rows.push(row(Waiting::Epoll, routers, 20.0));
        rows.push(row(Waiting::Bare, routers, 12.0));
        rows.push(row(Waiting::Memory, routers, 0.08));
    }
    let mut beyond = row(Waiting::Poll, 384, 10.0);
    (beyond.up, beyond.lost) = (100_000, 9_000);
    rows.push(beyond);
    rows
}

#[test]
fn a_mesh_that_grows_drops_and_is_saved_by_epoll_is_reproduced() {
    let chapter = chapter_mesh(&as_published(), 2);
    let verdict = &chapter.verdict;
    assert_eq!(verdict.outcome, Outcome::Reproduced, "{}", verdict.why());
    for words in [
        "to the power 2.01: quadratically.",
        "a mesh of 384 routers did not keep its sessions on 2 cores (100,000 of 147,072 ends up, 9,000 lost)",
        "A mesh of 256 routers takes 67 % less CPU with epoll than with poll",
        "take 12.0 \u{b5}s, and our daemon with epoll takes 20.0 \u{b5}s.",
        "In memory, a mesh of 256 routers with 65,280 session ends takes 0.5 % of one core",
    ] {
        assert!(
            verdict.why().contains(words),
            "{words:?}: {}",
            verdict.why()
        );
    }
    assert_eq!(
        (chapter.charts.len(), chapter.tables[0].rows.len()),
        (3, 17)
    );
}

#[test]
fn a_machine_on_which_nothing_drops_reproduces_the_rest() {
    let mut rows = as_published();
    rows.pop();
    let verdict = chapter_mesh(&rows, 2).verdict;
    assert_eq!(verdict.outcome, Outcome::Reproduced);
    assert!(
        verdict.why().contains("was not reached"),
        "{}",
        verdict.why()
    );
    assert_eq!(verdict.claims[1].holds, None);
}

#[test]
fn epoll_that_saves_nothing_does_not_hold_and_what_was_not_measured_is_said() {
    let rows: Vec<_> = [32, 64, 128]
        .iter()
        .flat_map(|&n| [row(Waiting::Poll, n, 20.0), row(Waiting::Epoll, n, 21.0)])
        .collect();
    let verdict = chapter_mesh(&rows, 2).verdict;
    assert_eq!(verdict.claims[2].holds, Some(false));
    assert!(verdict.why().contains("5 % more CPU"), "{}", verdict.why());
    let nothing = chapter_mesh(&[], 2).verdict;
    assert_eq!(nothing.outcome, Outcome::NotTested);
    assert!(nothing.claims.iter().all(|claim| claim.holds.is_none()));
}
