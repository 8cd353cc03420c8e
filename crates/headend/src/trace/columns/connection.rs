//! Columns of the whole connection.

use super::Get::{Count, Flag, Maybe, Moment, Name};
use super::{Column, column};

#[rustfmt::skip]
pub(super) const COLUMNS: &[Column] = &[
    column("connection", "", "", Count(|row| row.connection.number),
        "Its number: connections are counted from 1 in the order of their first packets."),
    column("first_packet", "", "", Count(|row| row.connection.first_packet),
        "Number of its first packet, among the IP packets of the whole input, from 1."),
    column("first_time", "", "first packet", Moment(|row| row.connection.first_time),
        "Time of its first packet."),
    column("last_time", "", "last packet", Moment(|row| row.connection.last_time),
        "Time of its last packet, which lies before `first_time` where the time stamps ran backwards."),
    column("elapsed_ns", "ns", "elapsed time", Count(|row| row.connection.elapsed().unsigned_abs()),
        "From `first_time` to `last_time`; 0 where the time stamps ran backwards."),
    column("packets", "packets", "total packets", Count(|row| row.connection.packets),
        "Packets both ways."),
    column("a_address", "", "host a", Name(|row| row.connection.a_end().0.to_string().into()),
        "Address of end a, which sent the first packet."),
    column("a_port", "", "host a", Count(|row| row.connection.a_end().1.into()),
        "Port of end a."),
    column("b_address", "", "host b", Name(|row| row.connection.b_end().0.to_string().into()),
        "Address of end b."),
    column("b_port", "", "host b", Count(|row| row.connection.b_end().1.into()),
        "Port of end b."),
    column("realm", "", "", Maybe(|row| Some(row.connection.key.realm.into()).filter(|&realm| realm != 0)),
        "A number that stands for the tunnel it is in, where tunnels keep connections apart (`--realm`)."),
    column("syns", "ends", "complete conn", Count(|row| row.connection.syns().into()),
        "How many of the ends sent a SYN."),
    column("fins", "ends", "complete conn", Count(|row| row.connection.fins().into()),
        "How many of the ends sent a FIN."),
    column("complete", "", "complete conn", Flag(|row| row.connection.is_complete()),
        "Both SYNs and both FINs are in the capture."),
    column("reset", "", "complete conn", Flag(|row| row.connection.is_reset()),
        "An end sent RST."),
];
