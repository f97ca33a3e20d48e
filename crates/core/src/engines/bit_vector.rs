//! `bit-vector`: for each field a vector of the rules that match there; one AND joins
//! them. The algorithm is in [`bit_vectors`](crate::parts::bit_vectors), which `rfc` uses
//! as well.

use crate::contract::adapter::{EveryWidth, build_static};
use crate::contract::options::EngineOption;
use crate::contract::spec::{Engine, EngineSpec, Wraps};
use crate::cost::estimate::{Costs, Shape};
use crate::model::error::BuildError;
use crate::parts::bit_vectors::{BATCH, BitVector, SINGLE, memory_and_building, met};
use crate::parts::simd::Isa;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "bit-vector",
    summary: "for each field a vector of the rules that match there; one AND joins them",
    paper: "[SFL17] §V, ref. 5; [DEC14] ref. 4",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::host_choice(
            "isa",
            &Isa::NAMES,
            Isa::lacks,
            "instructions to join vectors with",
        ),
        EngineOption::whole(
            "mebibytes",
            (1, 1 << 22),
            4096,
            "the most memory of all vectors, in MiB; rules that need more are refused",
        ),
    ],
    dynamic: Engine::takes_no_updates,
    accepts: Engine::accepts_all,
    build: build_static::<AnyWidth>,
    estimate,
};

/// The engine at every key width.
struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = BitVector;
}

fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let costs = memory_and_building(spec, shape)?;
    let (met, bytes) = (met(spec, shape)?, costs.bytes);
    Ok(Costs {
        batch: BATCH.batch(&met, shape, bytes),
        single: SINGLE.single(&met, shape, bytes),
        ..costs
    })
}
