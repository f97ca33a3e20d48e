use super::*;
use classyard::NoProgress;

mod originals;
