//! The units under systemd itself, on a machine where docs/install.md has brought up a subscriber.

use super::{Machine, ensure, until};

const DAEMON: &str = "headend.service";
const WEB: &str = "headend-web.service";
const QOS: &str = "headend-qos@home.service";

/// A request to the port of headend-web.socket. The machine has no HTTP client but its shell.
const METRICS: &str = "exec 3<>/dev/tcp/127.0.0.1/8080
printf 'GET /metrics HTTP/1.1\\r\\nHost: 127.0.0.1:8080\\r\\nConnection: close\\r\\n\\r\\n' >&3
cat <&3";

/// Two cables, and a policy for a router between them.
const HOME: &str = "ip link add lan0 type veth peer name lan1
ip link add wan0 type veth peer name wan1
for device in lan0 lan1 wan0 wan1; do ip link set $device up; done
mkdir -p /etc/headend/qos
printf '[link]\\nup = \"2mbit\"\\ndown = \"20mbit\"\\n' >/etc/headend/qos/home.toml
printf 'LAN=lan0\\nWAN=wan0\\n' >/etc/headend/qos/home.env";

/// What a unit of this test adds to headend.service, so that the watchdog needs seconds and not half a minute.
const FAST_WATCHDOG: &str = "mkdir -p /run/systemd/system/headend.service.d
printf '[Service]\\nWatchdogSec=2\\n' >/run/systemd/system/headend.service.d/test.conf
systemctl daemon-reload
systemctl restart headend";

/// Checks each unit, then stops and removes everything.
pub(super) fn test(machine: &Machine) -> Result<String, String> {
    reports(machine)?;
    reloads(machine)?;
    starts_again(machine)?;
    refuses_a_fault(machine)?;
    web(machine)?;
    shapes(machine)?;
    leaves(machine)?;
    Ok("status, journal, reload, kill, watchdog, a fault, web socket, queues, purge".to_owned())
}

/// The daemon's text is in `systemctl status`, and its log has fields in the journal.
fn reports(machine: &Machine) -> Result<(), String> {
    let has_one = |text: &str| text.starts_with("1 subscriber");
    machine.await_property((DAEMON, "StatusText"), has_one)?;
    let status = machine.run("systemctl status headend --no-pager")?;
    ensure(
        status.contains("active (running)") && status.contains("Status: \"1 subscriber"),
        || status.clone(),
    )?;
    let journal = machine.run("journalctl -u headend -o json --no-pager")?;
    ensure(journal.contains("\"HEADEND_"), || {
        format!("the journal has no field of ours: {journal}")
    })
}

/// A reload keeps the process and the subscriber; one with a fault fails and says why.
fn reloads(machine: &Machine) -> Result<(), String> {
    let process = machine.property(DAEMON, "MainPID")?;
    machine.run("systemctl reload headend")?;
    machine.run("cp -p /etc/headend/headend.toml /root/good.toml")?;
    machine.run("echo 'nonsense = 1' >>/etc/headend/headend.toml")?;
    let failed = machine.run("systemctl reload headend 2>&1 && exit 1; exit 0");
    let journal = machine.run("journalctl -u headend -n 20 --no-pager")?;
    machine.run("cp -p /root/good.toml /etc/headend/headend.toml")?;
    failed.map_err(|fault| format!("a reload with a fault succeeds: {fault}"))?;
    ensure(journal.contains("nonsense"), || {
        format!("the journal does not name the fault: {journal}")
    })?;
    machine.run("systemctl reload headend")?;
    let kept = machine.property(DAEMON, "MainPID")?;
    ensure(kept == process, || {
        format!("a reload replaces process {process} with {kept}")
    })?;
    let shown = machine.run("headend show subscriber user1")?;
    ensure(shown.contains("up"), || shown.clone())
}

/// A killed daemon and one whose loop hangs are started again.
fn starts_again(machine: &Machine) -> Result<(), String> {
    let others = |text: &str, old: &str| text != "0" && text != old;
    let old = machine.property(DAEMON, "MainPID")?;
    machine.run(&format!("kill -9 {old}"))?;
    machine.await_property((DAEMON, "MainPID"), |text| others(text, &old))?;
    machine.await_property((DAEMON, "ActiveState"), |text| text == "active")?;
    machine.run("headend show server")?;

    machine.run(FAST_WATCHDOG)?;
    let old = machine.property(DAEMON, "MainPID")?;
    machine.run(&format!("kill -STOP {old}"))?;
    machine.await_property((DAEMON, "MainPID"), |text| others(text, &old))?;
    machine.await_property((DAEMON, "ActiveState"), |text| text == "active")?;
    let journal = machine.run("journalctl -u headend --no-pager")?;
    ensure(journal.contains("Watchdog timeout"), || {
        format!("no watchdog: {journal}")
    })?;
    machine
        .run("rm -r /run/systemd/system/headend.service.d; systemctl daemon-reload")
        .map(drop)
}

/// A configuration with a fault is not tried again and again.
fn refuses_a_fault(machine: &Machine) -> Result<(), String> {
    machine.run("echo 'nonsense = 1' >>/etc/headend/headend.toml")?;
    let started = machine.run("systemctl restart headend 2>&1 && exit 1; exit 0");
    started.map_err(|fault| format!("a start with a fault succeeds: {fault}"))?;
    let (state, restarts) = (
        machine.property(DAEMON, "ActiveState")?,
        machine.property(DAEMON, "NRestarts")?,
    );
    ensure(state == "failed" && restarts == "0", || {
        format!("after a start with a fault: {state}, {restarts} restarts")
    })?;
    machine
        .run("cp -p /root/good.toml /etc/headend/headend.toml; systemctl restart headend")
        .map(drop)
}

/// The first connection starts `headend web`, which reads the daemon's socket as a user of its own.
fn web(machine: &Machine) -> Result<(), String> {
    machine.run("systemctl enable --now headend-web.socket")?;
    let before = machine.property(WEB, "ActiveState")?;
    ensure(before == "inactive", || {
        format!("without a connection, {WEB} is {before}")
    })?;
    let page = until("metrics of the daemon", || {
        let page = machine.run(METRICS)?;
        Ok(page.contains("headend_up 1").then_some(page))
    })
    .map_err(|fault| {
        let page = machine.run(METRICS);
        let journal = machine.run("journalctl -u headend-web -n 30 --no-pager");
        format!("{fault}: {page:?} {journal:?}")
    })?;
    ensure(page.starts_with("HTTP/1.1 200"), || page.clone())?;
    machine
        .await_property((WEB, "ActiveState"), |text| text == "active")
        .map(drop)
}

/// Queues of a cable's interface: start, reload with another rate, stop.
fn shapes(machine: &Machine) -> Result<(), String> {
    machine.run(HOME)?;
    machine.run("systemctl enable --now headend-qos@home")?;
    machine.await_property((QOS, "ActiveState"), |text| text == "active")?;
    const SHOW: &str = "headend qos show --socket /run/headend-qos-home/control.sock --json";
    until("answer of the queues", || Ok(machine.run(SHOW).ok())).map_err(|fault| {
        let journal = machine.run("journalctl -u headend-qos@home -n 30 --no-pager");
        format!("{fault}: {:?} {journal:?}", machine.run(SHOW))
    })?;
    machine.run("sed -i s/20mbit/30mbit/ /etc/headend/qos/home.toml")?;
    machine.run("systemctl reload headend-qos@home")?;
    let process = machine.property(QOS, "MainPID")?;
    machine.run("systemctl stop headend-qos@home")?;
    let result = machine.property(QOS, "Result")?;
    ensure(process != "0" && result == "success", || {
        format!("{QOS} {process} ends with {result}")
    })
}

/// `systemctl stop` ends it cleanly; `apt purge` stops the rest and leaves no unit.
fn leaves(machine: &Machine) -> Result<(), String> {
    machine.run("systemctl stop headend")?;
    let result = machine.property(DAEMON, "Result")?;
    ensure(result == "success", || {
        format!("{DAEMON} ends with {result}")
    })?;
    machine.run("systemctl start headend")?;
    machine.run("apt-get purge -y headend 2>&1")?;
    let left = machine.run("systemctl list-units --all --plain --no-legend 'headend*'")?;
    ensure(left.trim().is_empty(), || {
        format!("purge leaves units: {left}")
    })?;
    let state = machine.run("systemctl is-system-running || true")?;
    ensure(state.trim() == "running", || {
        let failed = machine.run("systemctl --failed --no-pager");
        format!("after the purge the system is {state}: {failed:?}")
    })
}
