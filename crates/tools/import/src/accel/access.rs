//! PPPoE interfaces, the LNS, and methods of authentication.

use super::{Setting, Work};
use crate::document::{Table, Value};
use crate::report::Fate;

impl Work<'_> {
    pub(super) fn access(&mut self) {
        self.methods();
        if self.is_loaded("pppoe") {
            self.interfaces();
        }
        if self.is_loaded("l2tp") {
            self.lns();
        }
    }

    /// `ppp.authenticate`.
    fn methods(&mut self) {
        for option in ["auth noauth", "auth any-login"] {
            if let Some((is_on, at)) = self.flag(option) {
                if is_on {
                    self.once("ppp", "authenticate", "nobody", &at, option);
                } else {
                    let why = "headend authenticates subscribers";
                    self.import.report.line(&at, option, Fate::Kept, why);
                }
            }
        }
        let is_open = self
            .import
            .config
            .table("ppp")
            .get("authenticate")
            .is_some();
        let methods = [
            ("auth_mschap_v2", "mschapv2"),
            ("auth_chap_md5", "chap"),
            ("auth_pap", "pap"),
        ];
        for (module, method) in methods {
            let Some(at) = self.modules.get(module).cloned() else {
                continue;
            };
            if is_open {
                let why = "with `noauth` or `any-login`, nobody is authenticated";
                self.import.report.line(&at, module, Fate::NoEffect, why);
            } else {
                self.import
                    .config
                    .table("ppp")
                    .add("authenticate", method, &at);
                self.import
                    .report
                    .key(&at, module, &["ppp.authenticate"], "");
            }
        }
    }

    /// `[[pppoe.interface]]`, and the keys of `[pppoe]` that are lists.
    fn interfaces(&mut self) {
        for setting in self.take_all("pppoe interface") {
            self.interface(&setting);
        }
        for setting in self.take_all("pppoe vlan-mon") {
            self.vlans(&setting);
        }
        if !self.import.config.has("pppoe.interface") {
            return;
        }
        // The section comes before its interfaces.
        self.import.config.table("pppoe");
        let any = self.flag("pppoe accept-any-service");
        if let Some((is_on, at)) = any {
            let option = "pppoe accept-any-service";
            match is_on {
                true => self.once("pppoe", "services", Value::Texts(Vec::new()), &at, option),
                false => {
                    let why = "headend accepts the names of `services`";
                    self.import.report.line(&at, option, Fate::Kept, why);
                }
            }
        }
        if let Some((names, at)) = self.take("pppoe service-name") {
            let names = names
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            let names = Value::Texts(names.map(str::to_owned).collect());
            self.once("pppoe", "services", names, &at, "pppoe service-name");
        }
        if let Some((delays, at)) = self.take("pppoe pado-delay") {
            match delays
                .split(',')
                .map(delay)
                .collect::<Option<Vec<String>>>()
            {
                Some(all) => {
                    self.once(
                        "pppoe",
                        "pado_delay",
                        Value::Texts(all),
                        &at,
                        "pppoe pado-delay",
                    );
                }
                None => {
                    let why = "not of the form DELAY,DELAY:SESSIONS";
                    self.import.report.unknown(&at, "pppoe pado-delay", why);
                }
            }
        }
    }

    fn interface(&mut self, (value, at): &Setting) {
        let mut words = value.split(',').map(str::trim);
        let name = words.next().unwrap_or_default();
        let report = &mut self.import.report;
        if name.starts_with("re:") {
            let why = "headend takes no regular expressions; give a `[[pppoe.interface]]` for each interface, with its `vlans`";
            return report.lost(at, "pppoe interface", why);
        }
        let why = match words.next() {
            Some(_) => "options behind the name are left out: headend has them in `[pppoe]`",
            None => "",
        };
        // `eth1.100` is a VLAN of eth1, whose frames headend reads itself.
        let (device, vlan) = match name.rsplit_once('.') {
            Some((device, vlan)) if vlan.parse::<u16>().is_ok() => (device, Some(vlan)),
            _ => (name, None),
        };
        report.key(at, "pppoe interface", &["pppoe.interface.name"], why);
        self.add_interface(device, vlan.unwrap_or("untagged"), at);
    }

    fn add_interface(&mut self, device: &str, vlan: &str, at: &crate::Place) {
        self.import.config.table("pppoe");
        let tables = &mut self.import.config.tables;
        let known = tables.iter_mut().find(|table| {
            table.path == "pppoe.interface" && table.get("name") == Some(&device.into())
        });
        match known {
            Some(table) => table.add("vlans", vlan, at),
            None => {
                let mut table = Table::each("pppoe.interface");
                table.set("name", device, std::slice::from_ref(at), "");
                table.add("vlans", vlan, at);
                tables.push(table);
            }
        }
    }

    /// `vlan-mon=eth1,10-20,30`, with `re:` for a regular expression.
    fn vlans(&mut self, (value, at): &Setting) {
        let mut words = value.split(',').map(str::trim);
        let name = words.next().unwrap_or_default();
        if name.starts_with("re:") || name.is_empty() {
            let why = "headend takes no regular expressions; give a `[[pppoe.interface]]` for each interface, with its `vlans`";
            return self.import.report.lost(at, "pppoe vlan-mon", why);
        }
        let ranges: Vec<&str> = words.collect();
        let ranges = if ranges.is_empty() {
            vec!["1-4094"]
        } else {
            ranges
        };
        for range in ranges {
            self.add_interface(name, range, at);
        }
        self.import
            .report
            .key(at, "pppoe vlan-mon", &["pppoe.interface.vlans"], "");
    }

    /// `[lns]` and the secret of tunnels.
    fn lns(&mut self) {
        let bind = self.take("l2tp bind").filter(|(ip, at)| {
            let is_address = ip.parse::<std::net::IpAddr>().is_ok();
            if !is_address {
                let why = "not an IP address";
                self.import.report.unknown(at, "l2tp bind", why);
            }
            is_address
        });
        let port = self.number("l2tp port").filter(|(port, at)| {
            let is_port = (1..=65_535).contains(port);
            if !is_port {
                self.import.report.unknown(at, "l2tp port", "not a port");
            }
            is_port
        });
        let module = self.modules.get("l2tp").cloned();
        let ip = bind.as_ref().map_or("0.0.0.0", |(ip, _)| ip);
        let ip = if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.to_owned()
        };
        let number = port.as_ref().map_or(1701, |(number, _)| *number);
        let mut from = Vec::new();
        for (at, option) in [
            (bind.as_ref().map(|(_, at)| at), "l2tp bind"),
            (port.as_ref().map(|(_, at)| at), "l2tp port"),
            (module.as_ref(), "l2tp"),
        ] {
            if let Some(at) = at {
                self.import.report.key(at, option, &["lns.listen"], "");
                from.push(at.clone());
            }
        }
        let note = if from.is_empty() {
            "accel-ppp's default"
        } else {
            ""
        };
        let listen = Value::texts(&[format!("{ip}:{number}")]);
        self.import
            .config
            .table("lns")
            .set("listen", listen, &from, note);
        let mut has_secret = false;
        if let Some((secret, at)) = self.take("l2tp secret") {
            has_secret = !secret.is_empty();
            self.import.secret("l2tp", "l2tp", &secret, &at);
            match has_secret {
                true => self
                    .import
                    .report
                    .key(&at, "l2tp secret", &["l2tp.secret_file"], ""),
                false => {
                    let why = "an empty secret is none";
                    self.import.report.line(&at, "l2tp secret", Fate::Kept, why);
                }
            }
        }
        if let Some((hides, at)) = self.flag("l2tp hide-avps") {
            match hides && !has_secret {
                true => {
                    let why = "headend needs a secret for this";
                    self.import.report.lost(&at, "l2tp hide-avps", why);
                }
                false => self.once("l2tp", "hide", hides, &at, "l2tp hide-avps"),
            }
        }
    }
}

/// `DELAY` or `DELAY:SESSIONS` in milliseconds, as headend writes it.
fn delay(text: &str) -> Option<String> {
    let (delay, from) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
    let from: u32 = from.parse().ok()?;
    match delay.parse::<i32>().ok()? {
        -1 => Some(format!("{from}:never")),
        delay if delay >= 0 => Some(format!("{from}:{delay}")),
        _ => None,
    }
}
