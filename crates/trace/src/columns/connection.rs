//! Columns of the whole connection.

use super::Get::{Count, Flag, Maybe, Moment, Name};
use super::{Column, column};

#[rustfmt::skip]
pub(super) const COLUMNS: &[Column] = &[
    column("connection", "", "", Count(|row| row.connection.number),
        "Number of the connection. Connections are numbered from 1 in the order of their first packets."),
    column("first_packet", "", "", Count(|row| row.connection.first_packet),
        "Number of the connection's first packet. IP packets are numbered from 1 across all input files."),
    column("first_time", "", "first packet", Moment(|row| row.connection.first_time),
        "Time of the connection's first packet."),
    column("last_time", "", "last packet", Moment(|row| row.connection.last_time),
        "Time of the connection's last packet; earlier than `first_time` if the time stamps ran backwards."),
    column("elapsed_ns", "ns", "elapsed time", Count(|row| row.connection.elapsed().unsigned_abs()),
        "Time from `first_time` to `last_time`; 0 if the time stamps ran backwards."),
    column("packets", "packets", "total packets", Count(|row| row.connection.packets),
        "Packets in both directions."),
    column("a_address", "", "host a", Name(|row| row.connection.a_end().0.to_string().into()),
        "IP address of end a, the end that sent the connection's first packet."),
    column("a_port", "", "host a", Count(|row| row.connection.a_end().1.into()),
        "TCP port of end a."),
    column("b_address", "", "host b", Name(|row| row.connection.b_end().0.to_string().into()),
        "IP address of end b."),
    column("b_port", "", "host b", Count(|row| row.connection.b_end().1.into()),
        "TCP port of end b."),
    column("realm", "", "", Maybe(|row| Some(row.connection.key.realm.into()).filter(|&realm| realm != 0)),
        "Number that identifies the VLAN, session or tunnel around the connection; present only with `--realm`."),
    column("syns", "ends", "complete conn", Count(|row| row.connection.syns().into()),
        "Number of ends that sent a SYN (0 to 2)."),
    column("fins", "ends", "complete conn", Count(|row| row.connection.fins().into()),
        "Number of ends that sent a FIN (0 to 2)."),
    column("complete", "", "complete conn", Flag(|row| row.connection.is_complete()),
        "True if both SYNs and both FINs are in the capture."),
    column("reset", "", "complete conn", Flag(|row| row.connection.is_reset()),
        "True if at least one end sent a RST."),
];
