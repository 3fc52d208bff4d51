"use strict";

PASSNET.start();
if (PASSNET.leaderboard) PASSNET.leaderboard();
