//! The queue `pfifo` of Sojourn as a plug-in, to compare with itself.

sojourn_plugin::plugin!(sojourn_plugin::DropTailParams);
