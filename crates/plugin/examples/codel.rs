//! The queue `codel` of Sojourn as a plug-in, to compare with itself.

sojourn_plugin::plugin!(sojourn_plugin::CodelParams);
