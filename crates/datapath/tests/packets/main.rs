//! Tests of packets, matches and actions over random frames.

#![allow(clippy::cast_possible_truncation)] // random bytes

mod actions;
mod caches;
mod dumps;
mod flows;
mod frames;
mod groups;
mod limits;
mod live;
mod load;
mod matching;
mod messages;
mod parsing;
mod pipelines;
mod rewriting;
mod settings;
mod tables;
mod text;
