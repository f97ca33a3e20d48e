//! End-to-end tests of the command line: they run the program as a user does.

#![allow(clippy::print_stderr)] // skipped tests say so

mod advise;
mod bad_input;
mod bench;
mod bench_reports;
mod caches;
mod calibrate;
mod check;
mod classify;
mod configs;
mod convert;
mod diff;
mod explain;
mod files;
mod generate;
mod hits;
mod hostile;
mod inspect;
#[cfg(target_os = "linux")] // for `ulimit -v`
mod limits;
mod links;
mod lint;
mod lint_config;
mod lint_html;
mod manners;
mod minimise;
mod mixed;
mod outputs;
mod parquet;
mod plot;
mod query;
mod replay;
mod reports;
mod reproduce;
mod reproduce_own;
mod reproduce_own_datapath;
mod reproduce_own_dec14;
mod reproduce_switch;
mod scripts;
mod streaming;
mod support;
mod switch;
mod switch_demo;
mod switch_run;
#[cfg(all(feature = "tls", target_pointer_width = "64"))]
mod switch_tls;
mod switch_view;
mod terminal;
mod threads;
mod trace;
