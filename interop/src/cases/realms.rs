//! A realm, a wait after failed logins, and the audit log, by our LNS with a client of ours.

use super::SOON;
use crate::headend::Headend;
use crate::process::until;
use crate::runner::Bench;
use crate::subscribers::{address, client_settings, lns_settings, private_file};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

const NAME: &str = "ann@Example.NET";

const SECTIONS: &str = "[[pool]]\nname = \"guests\"\nranges = [\"10.65.0.0/24\"]\n\
    [users]\nfile = \"users.toml\"\n\
    [[realm]]\nname = \"example.net\"\nstrip = true\npool = \"guests\"\nauthenticate = [\"mschapv2\"]\n\
    [throttle]\nfailures = 2\ndelay_s = 60\n[audit]\nfile = \"audit.jsonl\"\n";

fn users(password: &str) -> String {
    format!("[[user]]\nname = \"ann\"\npassword = \"{password}\"\n")
}

/// A name without its realm is in the users file; after two wrong passwords the right one has to wait; the audit log has
/// all of it.
pub(crate) fn realm_throttle_and_audit(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users("sesame"))?;
    let ppp = "authenticate = [\"mschapv2\"]";
    let lns = Headend::lns(bench, &lns_settings(ppp, "", SECTIONS))?;
    let lac = Headend::lac(bench, &client_settings().replace("user{n}", NAME))?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 1)?;
    let home = address(&lns.on_line(NAME)?)?;
    ensure!(home.starts_with("10.65.0."), "{home}");
    lns.verb(&["session", "set", NAME, "--rate-down", "20mbit"])?;

    private_file(bench, "users.toml", &users("another"))?;
    lns.verb(&["reload"])?;
    for count in 1..=3 {
        lac.dial(&tunnel, 1)?;
        ended(&lns, count)?;
    }
    let reasons = ended(&lns, 3)?;
    let has = |text: &str| {
        reasons
            .iter()
            .filter(|reason| reason.contains(text))
            .count()
    };
    ensure!(has("wrong password") == 2, "{reasons:?}");
    ensure!(has("too many failed logins") == 1, "{reasons:?}");
    ensure!(lns.counter("logins_throttled")? == 1);
    // The one that is connected stays.
    lns.all_on_line(1)?;
    lac.verb(&["tunnel", "delete", &tunnel])?;
    lns.wait_for("tunnels", "established", 0, SOON)?;
    lns.stop()?;
    audited(bench)
}

/// The reasons of that many ended subscribers.
fn ended(lns: &Headend, count: usize) -> Result<Vec<String>> {
    let all = until(SOON, || {
        let rows = lns.show(&["subscribers", "--ended"])?;
        let reasons = rows.iter().filter_map(|row| row["reason"].as_str());
        let reasons: Vec<String> = reasons.map(str::to_owned).collect();
        Ok((reasons.len() >= count).then_some(reasons))
    })?;
    all.with_context(|| format!("{count} ends"))
}

fn audited(bench: &Bench<'_>) -> Result<()> {
    let text = std::fs::read_to_string(bench.directory.join("audit.jsonl"))?;
    let lines: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let events: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    let expected = [
        "admitted", "changed", "refused", "refused", "refused", "ended",
    ];
    ensure!(events == expected, "{text}");
    ensure!(
        lines.iter().all(|line| line["schema"] == "audit/1"),
        "{text}"
    );
    ensure!(lines[0]["name"] == NAME, "{text}");
    ensure!(lines[1]["change"]["rate_down_bps"] == 20_000_000, "{text}");
    ensure!(
        !text.contains("sesame") && !text.contains("another"),
        "{text}"
    );
    Ok(())
}
