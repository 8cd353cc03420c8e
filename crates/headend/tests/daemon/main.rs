//! Tests the built daemon, its command line and its control socket, on loopback.

mod control;
mod doctor;
mod doctor_hosts;
mod faults;
mod goodbyes;
mod interfaces;
mod lab_use;
mod lifecycle;
mod nat;
mod now;
mod pages;
mod policy;
mod queues;
mod reload;
mod reload_apart;
mod routes;
mod service;
mod subscribers;
mod support;
mod tunnels;
mod web;
