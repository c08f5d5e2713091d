//! Regions: runs of physical sectors that can be written without harm to each other, because a guard follows each.
