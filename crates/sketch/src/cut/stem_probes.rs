//! Words by which a stemmer that changed is found. Written by `scripts/stem-probes.py`; do not edit.

use crate::params::Stemming;

/// For each language words with one space between two, and the digest of their stems: XXH3 of all stems, a line
/// feed after each.
#[rustfmt::skip]
pub(super) static PROBES: [(Stemming, &str, u64); 18] = [
    (Stemming::Arabic, "\
        آ أ ؤ إ ئ ا ب ة ت ـ ف ك ن ه و ى ي ﺀ ﺁ ﺂ ﺃ ﺄ ﺅ ﺆ ﺇ ﺈ ﺉ ﺊ ﺋ ﺌ ﺍ ﺎ ﺏ ﺐ ﺑ ﺒ ﺓ ﺔ ﺕ ﺖ ﺗ ﺘ ﺙ ﺚ ﺛ ﺜ ﺝ ﺞ ﺟ \
        ﺠ ﺡ ﺢ ﺣ ﺤ ﺥ ﺦ ﺧ ﺨ ﺩ ﺪ ﺫ ﺬ ﺭ ﺮ ﺯ ﺰ ﺱ ﺲ ﺳ ﺴ ﺵ ﺶ ﺷ ﺸ ﺹ ﺺ ﺻ ﺼ ﺽ ﺾ ﺿ ﻀ ﻁ ﻂ ﻃ ﻄ ﻅ ﻆ ﻇ ﻈ ﻉ ﻊ ﻋ ﻌ ﻍ ﻎ ﻏ ﻐ \
        ﻑ ﻒ ﻓ ﻔ ﻕ ﻖ ﻗ ﻘ ﻙ ﻚ ﻛ ﻜ ﻝ ﻞ ﻟ ﻠ ﻡ ﻢ ﻣ ﻤ ﻥ ﻦ ﻧ ﻨ ﻩ ﻪ ﻫ ﻬ ﻭ ﻮ ﻯ ﻰ ﻱ ﻲ ﻳ ﻴ ﻵ ﻶ ﻷ ﻸ ﻹ ﻺ ﻻ ﻼ آي أآ أأ \
        أؤ أإ أا ؤّ ؤﺊ إﺹ ئﻄ ات ال ان بب تا تم تن تﺑ سأ ست سن سي كك كم كن لل لِ نا ني ها هم هن وا ون ين ﺃُ \
        ﺡف ﺢف ﺢﺢ ﺩل ﺪٍ ﺮف ﺴل ﺺَ ﻀب ﻁﻁ ﻇٌ ﻝب ﻣل ﻮً ﻱب ﻶْ ئبب بال باﻓ تست تما تﺸف كال كما كمو كنﻔ نست هما \
        ىﺵﺵ يست ﺘاف ﺢ'ف ﺢ'ﺢ ﺸال ﻀ'ب ﻁ'ﻁ ﻅةف ﻧلل ئ'بب تاﺐﺐ تنﻡف هاﻲب ﺸ'ال ﻅة'ف ﻥﺔﻭﻩ ﻧ'لل ﻯكال ايستﺒ بونلل \
        نللتن ﺧونلل ﻫناال ﻯ'كال هماـلل ﻌستكال ﻧباللل ﻊكموكال كموكالتم يستكموكال تموك", 0x98d1_e85c_32c7_44b2),
    (Stemming::Danish, "\
        e dene enes engs it'e sd's denes dg'en døger eendt eg'kt elset gs'gt heden kl'et n'lig ne'ig seddt \
        sg'es sh'gd tergt øl'er derens dl'ers dø'ets eknrgd endene ennlig eredkk eø'ere eøt'es hederr \
        løstnn nl'hed rd'ene sk'lig øethed øl'ens øte'et deliggt eerløst ekeeres el'ende engerer enshers \
        erdenes etsktll eøøddig gsl'ets hd'enes hedenne henheds hgl'ens høi'lig kk'ered kl'eren le'erne \
        lg'elig ng'erer nl'eres rk'eret sh'heds sik'ene tti'ers øgtelig øild'en ddt'ende derendes ds'endes \
        døkerens eeseeret eeø'eret ehdernes ei'ernes eke'eres essheden estsshed gh'erets herethed hr'erens \
        idn'heds kii'elig ll'heden ll'heder neielles rn'ethed sg'erede øsle'hed dgø'heden dø'erende \
        døk'erens eløstered enølleret ererøeren ersgerede eøhl'enes gnsd'erne gse'ethed hii'endes \
        ikdøerets krglr'ere ligrheder ndlø'ered rtddlh'ig si'hedens eligtrddds endestkigg eretsseren \
        hgesn'eren ikdø'erets irnllernes rh'erendes rløsr'erer slrrsøiggd tkiggendes økes'erede \
        derserendes endellheden eredktllets erenskkered etstntterer ligtllerede tllr'erende trrgkerrene \
        tgkrør'heder eliggntsselig sønen'erendes tløhkhkkerets hgehinelserets erendedgghlhggig", 0xf94f_b24d_bd97_8de3),
    (Stemming::Dutch, "\
        a s á ä é ë í ï ó ö ú ü en ft ig se áê äl és éu éê éö ëc íè íú ïe ït ój öq öé úí úú üù aam aíd bar \
        e's end ene eëë fïs ing jöè kía léó nde oüo uux àïô áoo ásò áíé äíe é'u é'ê ésa éáí éíê êíá ëeë \
        ëww ëòë ëòù í'è íeä íre íse ívm ï'e ïbö ïtt ïvv ïôà ólé ö'é öxx öïb ú'í ú'ú úaí úen úoú úúo ûüt \
        üez ünp ütû a'és aí'd aíòd baar bböà bílü deóa e''s erig eufé eávb eécc eéff eëmk eëêa eï's ffás \
        fföv geme igüö iëûn jö'è kkíü kí'a lijk reév heden rekke éshóön eehvhtte ùupötdde", 0x8c18_4a40_c79e_44f1),
    (Stemming::English, "\
        e ant ate aty b's bed bli d'' ds' eed ent f'l ful hli ied ies ing ion ism iti ive ize lic lus mer \
        mss ogi ous sky xal able abli alli ance anci ator bias edly ence enci erge howe ible ical idly \
        izer lips ment n's' ness news only skis sses ugly uved alism aliti alize andes arsen ation ative \
        atlas dying early eedly ement entli fonly fulli gener icate iciti ingly iviti lying ooied ousli \
        skies tying ai'ful biliti commun cosmos exceed gently inning ivemer lessli outing singly tional \
        ational canning earring fulness herring ira'ive iveness ivewize ization ousness proceed succeed \
        uinning unbadal univers usexcli antmming bilitity efcannic icalfate iearring migapism alliwable \
        biphogist dukgebant ivemement izmentiti anceppence icatecdent iediedment izertplzll latermment \
        organbance xfafusible encikhative interxdfent laterliciti bilitiantion organnngical organssousli \
        organmentness organsrntfkaaiveness ated icatebbed ogistbled iedffed fulligged ized alismpped \
        ativetted", 0x441e_304d_7f57_8c5a),
    (Stemming::Finnish, "\
        a e' eja ejä kko lla lle llä mma mme mmi mmä nne ssa ssä tta ttä ansa atee ehun ejän ekpa empi \
        etta ihen imma immi immä impä inet nneu o'tä ssäu ttae ttäo u'an unne ussä ä'na ä'ta ö'aa ö'ää \
        ököö a'nsa akksi anupa ao'oo atknä e'tta eejkk ennin hänuj i'hen i'hän idtuu ihejä iikkä imddn \
        immai immäu ja'ko jkkee jo'ni jämme kkäii missa mmeoä mu'nä nakdd o'ttä onllä oö'ii polla potpä \
        ppaoo sulle ttaöi u'ltä u'nne u'ssä u'sta utaan äe'si ölhin aanlle adulla ak'ksi allääi anllta \
        anäiko dendee dmmeee däjjöi en'den enttön hönnöt hönpää imdd'n inihän kussäa mi'ssa mmimkö nänhaa \
        nöthön oikdät on'llä otmsti oä'mme po'lla su'lle ttauua ttenjn tujhon tönkin uitukö uj'hän äe'ine \
        ämpana äuklii öl'hin öluhan öo'han aduiden ahjjmme aipotpä dennäoo ekjskkn elkkään ese'hen hendstä \
        himmioi hönsini inenmpä kaannäu kkäaaii ksä'lta könsänä llauiee lläöiuu nmmällä näninsä nöt'hön \
        oiskaan oulläta ppaaioo pättäei stnneöi timmaii tuj'hon ullasta ulötsti ummaltä unömejä uuppaoo \
        änhonko änlessa äässaoo ölu'han aipknjoa apä'impä atuanmpa aännässä denmmata eellesta ejatamma \
        ejämmeoi enhuneja hankkäii henmpäna hunkddna iilikata ikdlppöö immäööui ionulmmi iudskisi jinekään \
        jukmpätä kpimpikö könsassä köua'nsä kööunnmm ltaoddtä ludmmiei mkjttäaa mmejkkee nämpastä oddtälta \
        oiimmiöö onssallä ponnella siimmiai ssättäuu tannekin ttatöojä ulöt'sti umimmäui unöm'ejä ädio'hun \
        äiltästa änhännsä ääöjäpat öläminsa ööikdlpp akeumänaä ejammempi hoitä'mpi hsehe'mma hänönimpi \
        ikoä'immi immaouiöi immilmmmä iolimmini ionul'mmi kaannaltä lapä'imma leaelläna läsn'siin \
        löhdekään mpapepllö mpämmelta name'impa ndunhanko nsällestä pöjomimmä saimt'stä ssäksimme \
        ställaltä tolä'impi ttämmessa ttäpokaan öheöe'mpä ökipssauu ajapotpatä ajmjjäiaoi dunkdssanä \
        däummpalta eseällässä hjpaejmmei hönimmimmi immaöitten immillelta immäjeitpa jjuäjjnnee jpösjo'eja \
        kaanllällä ltaimmassä mmassjalla muutonaltä nöshmpältä oiajmjjäia pepllö'mpa pöjom'immä stäimpikin \
        tolänäimpi öunnmmäikö aisknllassa ajmjjäiaaoi dsdnjhmmaee ionulmpämmi llekhdmmeäö mkjjenselta \
        mmähoitämpi niniammalle oddtättälta saimtttästä shdnouthhön stipnöjohan thilld'tten thökumminsa \
        tlhmeithhon tllhpömmäuu ttenlmäpipä ölaeihonmme hjtajsejallä immäpjitäine jjuäjjnnöiee \
        kaanditjosti lakouuinempi mmonöomi'mmä phköäsineltä pjitäimmaine ttitinkeimpi uaopkiöndenä \
        umöimmmaimmi asoituäppässa eluönöimmämmi uietmmlmineta jjjjsmmemmihän töäapätlhennsä \
        äoameäahenkään najpotäjstiimmi kaanllaan taltaan ttänaan eissaan iistaan uillään hanltään ainään \
        issään tästään llatään ineen", 0xfd62_0a09_d3c5_e67b),
    (Stemming::French, "\
        a if én és aiè aux col ell enn ett eux ifs ité ive ièr lée n'é onn par t'a tap épl able ance c'iv \
        ciez eaux eill ence erai euse gait géis isme iste ités itéx ives ièrr l'ée ment mera n'er xité \
        ables ances ateur ation c'iez ement ences euses eusèt eè'és iegas ismes istes itégv itésl ivévb \
        lerai logie luira m'col m'era m'ifs ments n'ées niréc s'aux seais t'abl t'eux txier usion ution \
        èuonn éplcf ablèât amment ateurs ations atrice c'âtes ements emment eusiée fiâeît icuécg itéfcp \
        itésfc l'abil l'erai l'ités l'âmes liirez logies n'ante nairai nerait periez puîmes réante s'eais \
        usions utions zaisse zation zqoant âi'ées éeèxèl ésèvlf alfnèpc anteîès atrices aèmrnbm c'ateur \
        c'irais ea'ants ee'erez erezzèz fations fvaière iazâmes iseaise itéspnv l'ables l'asses l'irent \
        n'ances n'erait n'istes nulerai oéaboux râerons s'antes xisière xâzgzir zcââtes aitczéll alîteras \
        auxaréqx c'atrice c'issait eraitèmq erasèvqv gèissant ifsîâcèf iraeront ismepuèb issement ivesoèsx \
        lucairas mîmesera nuberais qolantes rvoeriez t'usions ulméîtes zpèèasse zraasses èe'irons èrentécv \
        îgeiriez abletxérg assionséz ementmuèp ieuissent ieéissons ionsègvzb iraitâîèn issements ièrezmélp \
        ièrpstpmx logiegvév ou'assiez qfezissez sîelaises vtcéiront xéassions âîènirait ézîissiez \
        ailcpggvéq aisecbnècm cbnècmaise citgerions eauxgméqtn encesivité eronsubèsl ibésissais intosisses \
        iraitfbâèg ismeaèrent itéeassent nomèairais ouxitirent qtiissions t'issement vpaissante âtesézlénq \
        cacfissants cbnècm'aise emmentisqèm iraèmqerait issanteéémv mentsésaise ucièrissait mgîoissantes \
        sîelonnaises iraiscéfxczgm emmentalirions aiseablement eusement eivement ièrement abilité ifsicité", 0xf3ff_a07f_ad25_82c0),
    (Stemming::German, "\
        e s ä ö ü ae c' em en er es ig ik st ßc aeß at' end ern est oeg uep ung ßae aeco erßd etßh heit \
        isch keit kß's lich oend oepü püoe quuo uehp ueln ß'ae ßhet ßöae ü''s coeae dcä's emget es'se \
        eüüae kß''s kßs's oeqüu pä'es skq's taetr ue'ln uelin ueüln ßh'et ßlntr öclns üst's üüaee aeemen \
        aeeste aeiptk aeksik cia'ln coendö cügoen doeest dsaesä eßmidd eöclns gdcues heitä' hßtick igueer \
        ikö'ig lqcaeö lä'ern od'sch oerrum ogp'er oqätln päaees stueik tim'em tuüoer uepüoe uequem ueörqk \
        ßhoeet äptrg' ätsa's ö''sch öc'lns ös'sch üüae'e üüaeüe aeigest aeiköig cehnueü cügo'en em'schs \
        ernoe's erßtokg gdcu'es hß'tick igqulns ikö'sig oepheit oetick' oeöggds ons'est oqät'ln rüoelns \
        tickü's tuüo'er tüuhaem ueuüoqu ueüüaee ungetem ßmidd'e äoqätln ätsa''s öctrlns ömc'ern ücügoen \
        ümßerin üoelich üq'erin üsntöo' üsßrnet hßerntick odaoß'sch ungoßnhpp emßsrdlcsr odaoß''sch \
        endlichkeit ernißarakmk odaoßet'sch ungqlßtqaep erintßtupigr tßtupigrerin tßtupigr'erin \
        tßtupigrueerin", 0xb4cb_baf4_d2c6_77fe),
    (Stemming::Greek, "\
        ΐ ά έ ή ί ΰ α ς ϊ ϋ ό ύ ώ ήησ ίδε ίρυ ΰζΐ α'ω αγα αγε αει ακι ατα βασ γει γλί δέο εισ εων εωσ ηθω \
        ηκα ηκε ησα ησε ησω θυσ ιζα ιζε ιζω ικα ικο ιου ισα ισε ισω ιων λου μαν ουν ουσ πών σεσ τια τοσ \
        φωσ ωαω αγαν αγεσ αδεσ αδων ακια αμαι ασαι αται βιζα δανε εδεσ εδων ειτε εσαι εται ηδεσ ηδων ηθει \
        ηκαν ηκεσ ησαν ησει ησεσ ησου ηστε ιδια ιδιο ιζαν ιζει ιζεσ ικου ικων ισαν ισεί ισεσ ισκε ισκο \
        ισμο ιστα ιστε ιστη ιστο ιτσα ματα ομαι οταν οτατ οτερ ουμε ουνε ουσα ουσε υτατ υτερ φωτα ωτατ \
        ωτερ αγαμε αγανε αγατε αρακι βιτσα εθΰοι εστατ εστερ ηθεισ ηθηκα ηθηκε ηθουν ηκαμε ηκανέ ηκατε \
        ησαμε ησανε ησατε ησετε ησουν ιδιων ιεμαι ιεσαι ιεται ιζαμε ιζανε ιζατε ιζεισ ιζετε ιζουν ιοταν \
        ιουμα ισαμε ισανε ισατε ισεισ ισετε ισκοσ ισκου ισμοι ισμοσ ισμου ισμων ισουν ιστεσ ιστησ ιστοι \
        ιστοσ ιστου ιστων ιτσασ ιτσεσ ιτσων κρεασ ματοσ ματων μουσα ομουν ονται ονταν οντασ οσουν οτανε \
        ουδεσ ουδων ουμαι ουσαν ουσεσ πέισω περασ σογια τερασ φαγια φλαγα φωτοσ φωτων ωθηκα ωθηκε ωντασ \
        αρακια ηθειτε ηθηκαν ηθηκεσ ηθουμε ηθουνε ησουμε ησουνε ιζουμε ιζουνε ιομουν ιονταν ιοσουν ιοτανε \
        ισμουσ ισουμε ισουνε ιστουσ κρεατα ολογια ομαστε ομουνα οντανε οσαστε οσουνα ουδακι ουνται ουνταν \
        ουσαμε ουσανε ουσατε περατα περατη πιτσασ ριζαμε σκαγια σογιου σογιων τερατα φαγιου φαγιων χιτσων \
        ωθηκαν ωθηκεσ έπιστοσ αιρπεων αριστησ αρκμιζα γεγονοσ ηθηκαμε ηθηκανε ηθηκατε ιεμαστε ιεσαστε \
        ιομαστε ιομουνα ιοντανε ιοσαστε ιοσουνα ιουνται ιουνταν κρεατοσ κρεατων ολογιου ολογιων ομασταν \
        οσασταν ουδακια ουμαστε ουντανε περατοσ περατων σκαγιου σκαγιων τατογια τερατοσ τερατων τραγανε \
        χριστων ωθηκαμε ωθηκανε ωθηκατε ωκιτσασ γεγονοτα ιομασταν ιοσασταν ιουμαστε ιουντανε καθεστωσ \
        λαπισατε οντουσαν ςωθηκαμε τατογιου τατογιων έιδιωνισω γεγονοτοσ γεγονοτων ημπριτσεσ ιοντουσαν \
        καθεστωτα οφπελουσα συνπιζεισ υξόφιτσασ υτατηθεωσ χκονιτσων ίεμπαιζετε δταχωθηκεσ ευπευχραγε \
        καθεστωτοσ καθεστωτων νετασχιστο οϋθβσιτσων τερασφαγεσ φρευπιστεσ θασχουδακια ικωνσερτικα \
        κλιμμαλιζαν κρεαταλιικα λαχηφαιστεσ νιτεισουδεσ αφτεραταιστα βενησουισμοι εμπαβασκιστε \
        μπορουσαιτσα οντασφορισκε ουσαναθαγαμε έόαπεκλεισετε ειτεδροσοπαγε κλεωθηκεηκαμε ουσεαθροιζουν \
        μετεπεφρυδισκο νιφεσωκλεισουν οβελισκουιζαμε ραθολογαλωθηκε καιμισανειστουσ ιζεισματοσαρακια \
        παιχνματωνηθουνε ψυχοπλαναμπαιζετε περιπαστραβομουτσηθηκανε αθροισει αναμπαισει αποκλεισει \
        δανεισει εκλεισει εμπαισει εξαρχαισει επαισει επεισει εσεισει κλεισει μετεπεισει ξαναπαισει \
        περιπαισει συναθροισει χαρτοπαισει ασειστα δανειστα εσωκλειστα κλειστα πλειστα σειστα συναθροιστα \
        ακτιστα αοριστα απιστα αχνιστα αχτιστα γεμιστα γυριστα εμπιστα εχθιστα ηδιστα καθιστα κακιστα \
        κτιστα κυλιστα λυγιστα μιστα μακιστα μεγιστα σχιστα ταχιστα υψιστα φαιστα φιλιστα χτιστα χωριστα \
        αποκλεισμο εγκλεισμο μετασεισμο μικροσεισμο σεισμο αντιδανεισμο δανεισμο αγνωστικισμο \
        αλεξανδρινισμο ατομικισμο βυζαντινισμο γνωστικισμο εθνικισμο εκλεκτικισμο θεατρινισμο σκεπτικισμο \
        τοπικισμο δανειζα επαιζα ξαναπαιζα παιζα περιπαιζα συναθροιζα αλισφακι αμβρακι ανθρακι βαμβακι \
        βρακι καιμακι καπακακι κατραπακι κλιμακι κορακι λαβρακι λουλακι μαλακι μερακι μουστακι ναγκασακι \
        πλακι ρυακι σκακι σλοβακι σοκακι σπανακι σφακι τζακι τσεχοσλοβακι φαρμακι φυλακι βαλακι γιανακι \
        γλακι ζακι ηγουμενακι καρδακι μακρυνακι νυφακι πατερακι μαρκσκακι τοσακι τριπολακι αρακιαρακι \
        αρακιααρακι αιφνιδια ιριδια ολοιδια ψαλιδια παιχνιδια ιβισκε λυκισκε μηνισκε φραγκισκε αμπαριζα \
        αρριζα βαθυριιζα βαρκιζα βολβοριζα γκριζα γλυκοριζα γλυκυριζα ιμπιζα κορνιζα λουιζα μαριζα μαρκιζα \
        μπριζα πιπεροριζα πολυριζα πριζα γιαγιαδεσ θειαδεσ κυραδεσ μαμαδεσ μαναδεσ μπαμπαδεσ ντανταδεσ \
        οκαδεσ πατεραδεσ πεθεραδεσ γηπεδεσ δαπεδεσ εμπεδεσ ιπεδεσ κρασπεδεσ μιλεδεσ οπεδεσ υπεδεσ αρκουδεσ \
        βελουδεσ καλιακουδεσ λιχουδεσ λουλουδεσ πεταλουδεσ πλεξουδεσ σκουδεσ σπουδεσ τραγουδεσ φεουδεσ \
        φλουδεσ φρουδεσ χνουδεσ γαλεων δεων ελεων ιδεων νεων παρεων αδικα αμανικα αμμοχαλικα ανηθικα \
        αντιδικα βρωμικα γερικα ενδικα εξωδικα ηθικα καλλινικα καλπικα καταδικα μουλικα μπαγιατικα μπανικα \
        μπολικα μποσικα νιτικα ξικικα πετσικα πικαντικα πιτσικα πλιατσικα ποστελνικα πρωτοδικα συναδικα \
        συνομηλικα τσαμικα υποδικα φιλονικα φυλοδικα φυσικα χασικα βιωθηκα ενωθηκα ζωωθηκα λιωθηκα υψωθηκα \
        ναρθηκα οθηκα πιθηκα σκουληκα σκωληκα σφηκα διαθηκα παρακαταθηκα προσθηκα συνθηκα βλεπουσα \
        κυματουσα λαχουσα ληγουσα μαλλουσα μαντιλουσα ομουσα πανταχουσα ποδαρουσα πρωτουσα φαγουσα \
        φρυδουσα αγκουσα αιθουσα αμουσα αναρρουσα ανηκουσα δεουσα δεσποζουσα δευτερευουσα εκλιπουσα \
        ενδιαφερουσα καθαρευουσα λαμπιδουσα λεχουσα μεδουσα μεσαζουσα πατουσα πλεουσα τσαουσα υποτεινουσα \
        φαρμακουσα χαδουσα ναυλοχαγα ψοφαγα λλαγα λοχαγα οφαγα πελαγα πραγα ρπαγα σμηναγα φραγα χορταγα \
        αβασταγα αδηφαγα αειπαγα αιμοσταγα αμαλαγα αμαλλιαγα ανυπαγα ανυσταγα απεραγα αποταγα αρτιπαγα \
        ασπαγα ασπαραγα αφαγα αχαραγα δερβεναγα διαταγα εναγα επιταγα κροκαλοπαγα μαγα ναυαγα νεοπαγα \
        νομοταγα ξεφαγα ολοπαγα ομοταγα ουλαμαγα ουραγα παγα παμφαγα πολυφαγα προσταγα προσωποπαγα \
        σιδηροπαγα συμπαγα συνταγα ταγα τραγα υποταγα χαραγα δωδεκανησα επτανησα ερημονησα μεγαλονησα \
        χερσονησα αειμνηστε απληστε ασβηστε αχρηστε δυσχρηστε ευχρηστε κοινοχρηστε παλιμψηστε σβηστε \
        χρηστε εξωνηθουνε κακομουτσηθουνε ρηθουνε σπιηθουνε στραβομουτσηθουνε αθροισα αναμπαισα απεκλεισα \
        αποκλεισα δανεισα εκλεισα εμπαισα εξαρχαισα επαισα επεισα εσεισα εσωκλεισα κλεισα μετεπεισα \
        ξαναπαισα πεισα περιπαισα συναθροισα χαρτοπαισα αζηθουμε αλλοσουσηθουμε ασουσηθουμε παρασουσηθουμε \
        φηθουμε χηθουμε ωριοπληθουμε ανισα αφισα γεισα γιγαντοαφισα γκισα γκεισα δημοκρατισα κομισα λαρισα \
        μισα ολοισα πουκαμισα", 0xe3c7_8f1a_b2c9_8645),
    (Stemming::Hungarian, "\
        a d e i k m n o t á é ad ai ak al am an at ba be ed ei ek el em en et id ig ik im ja je ké nk od \
        ok om on ot ra re uk ul vá vé ád ái ák ám án éd éi ék ém én éé öd ök ön öt ük ül a'm adi aid aik \
        aim aké ane ban ben bud ból ből eid eik eim eké hez hoz höz igo ink jai jei juk jük kor nak nek \
        nál nél o't odk ofn oké rea rán ról ről tól től unk val vel áid áik áim áké ánk áéi éid éik éim \
        éké ély énk ért ézs ééi öké ünk a're a'ám abek aink amam ceád ceém doái e'an eink giék góen i'ad \
        itek jaik jeik ként képp moom o'ig o'öt o'ül ocba pdén stul stül uped ziai áink ájuk ázot é'at \
        é'em éhje éink éjük öyök őnok őyéd a'jük abhez acfod aitok astul aszvh atnön aé'ak aü'be banöd \
        bomuk bőánk efnek eitek emjik háunk i'ból igykk igzon iktet kciák lőáei müjei o'ben o'től o'ért \
        oa'éi oréik ra'ra rámja suóvá u'énk zühoz áitok ányra é'aik é'ról édjvé éitek ósnál öcsig öfzük \
        üjről őádzs a'jaik a'jeik a'ájuk aj'eik anként buként bövvel crejai enként gürfnk iénjuk jaitok \
        jeitek jmáttá jotban kiőáik képpen onként rduhöz rééjük ue'ünk zsőkor ácitek önükké astullá \
        hni'ből joéitek kópképp noáitok obé'nak pcjaide yaaitok áikkbbé djainköd déieitek eidjjnél \
        etytstön gójeitek i'enként najaitok ohanként uhsd'tól é'onként iönképpen jeinknken jéstülnál \
        tástulnek vvjeidéké imestülnek mösjeimáké zsőbkéeffá ekéánkéntöt nekastulről jaima bólddal \
        áinkggal bőlggyal einkjjal aidllyal otmmal jeinknnal ééirral énsszal valttyal éidzzsal", 0x30ef_4998_192a_4344),
    (Stemming::Italian, "\
        á é í ó ú ci la le li lo mi ne qu si ti vi d'l gli ica ice ici ico ità iva ive ivi ivo l'à m't osa \
        ose osi oso s'm t'm v'u ante anti anza anze cela cele celi celo cene d'er d'àu enza enze gl'l iche \
        ichi ismi ismo ista iste isti istà istè istì l'd' l'iv l'uú m's' m'si m't' mela mele meli melo \
        mene s'ma sene t'la t'li t'm' t'uo tela tele teli telo tene un'q v'èà vela vele veli velo vene \
        viió abile abili all'c atore atori d'irà d'éné gl'az ibile ibili l'ano l'gl' l'mié l'uto l'óèà \
        logia logie m'eva m'gág m'uti mente s'osi s'zlì t'ive t'zíì un'bi v'ata velir aerete all'zb amente \
        amenti amento atrice atrici azione azioni bavano ceneva d'cela d'enza d'ichi d'sene d'àamn darono \
        dell'h dágata eràerà gliela gliele glieli glielo gliene gé'ito hliite imenti imento l'àità liiute \
        lqóuto lò'ire m'íoèg nell'é nesiar rí'uta s'irai s'isti s'velo sgòita sull'r t'anti t'meli t'váéì \
        tutt'a uo'ivo usione usioni uvóavi uzione uzioni v'abil v'ddud v'ista vqàivi áavate èe'irà èsoare \
        écóerò íi'ato ócoiva all'òlú civ'iti co'erei cuíerai cèéenda d'arono d'evamo dall'ìí dell'iz \
        eràúati gl'cdúi hè'asse itoòere iò'isca l'hthtl m'evoer mònammo nó'iamo osimuti qeremmo quell'u \
        quest'ó s'abile s'tlstò s'òrite su'irai t'mlzcu tutt'gq unúoevo v'háurú ziàimmo áòqtirò áúbando \
        ètiisci èòàdevi íàdirei íòe'avo úváisce úìnendo all'eoav anooassi d'atrici d'mòèctc d'nnteli \
        dall'ìqh dararono dell'crì di'iremo dmievamo gl'gerei gl'òéèté l'ireste l'àllgúr m'vívela mitiende \
        màèerete nell'qiì ngateava núdavate quest'ns quèavamo qé'evate s'iresti s'snílíc s'usione sull'cev \
        súneremo t'íoègm' tutt'ògé un'úzanq uè'evano v'ataico v'essero v'íòeavo vhèmisco áu'ivano éleerono \
        éú'irono ígaivate batoavano dbòandoci eqàassero htslaendi laeassimo lirgliela mivcivamo qúliscono \
        rendoveli rà'eranno tsìiranno zá'eresti áìdiremmo èìhessero émaissero óa'iscano arelireste \
        ddaúiresti ilareirete iteòereste oóó'eremmo ziceirebbe znóóerebbe hé'irebbero meleabilità \
        osoerebbero uzionerveli anzeargliele abilamente icamente ivamente osamente", 0x7412_6695_bd11_df3c),
    (Stemming::Norwegian, "\
        a alps amme mers rh'a si'e østa ahhet am'es anden enldt eslig gg'dt h'het heter ivrar kn'as kt'en \
        lp'ig mvh'e od'vt p'lig rm'er ti'ar øn'et aeenas alphet atlr'a e'eleg e'slov edmede ee'het el'ens \
        eø'lig gh'ane gln'es hetene høpane im'ert ka'lov li'leg mn'eig mn'ene om'ers p'elov st'ast vo'ets \
        øet'ig øh'ede øhheig aeen'as apoande astlast eh'edes eiderte elteleg eløslov gsn'het hetenes \
        hni'ene hr'erte høp'ane ianm'en in'eleg mm'slov nk'elov oø'ende po'ande rdes'er tv'enes vrs'lig \
        vs'elig øhh'eig elø'slov ertelovs esaheter gsne'ast igørelov okapelig pnø'enes rnd'eleg rnkk'ens \
        rsm'edes rv'heter rvnt'ers so'heten sso'elig sø'endes dpl'endes emphetene igør'elov mp'hetene \
        ok'hetens opt'heter smnl'ande stnnrn'et gar'hetene imhidelsas iv'hetslov rvntkapers to'hetenes \
        vmv'hetenes vrvlrh'ende", 0xded4_e35c_2086_3145),
    (Stemming::Portuguese, "\
        a e i o á ã ç é ê í ó õ os eza ica ico ira iva ivo osa oso ador ante ezas icas icos iras ismo ista \
        ivas ivos osas osos tãer ável ível a'iam adora aisar antes arais arias biria dbuiu ereir geiou \
        iarem idade ismos istas logia mente mires nirei síêeu zãera ância ência õáara adoras adores airiam \
        amente amento aríeis bbêado cêrira idades imento laéias logias lomava loçais miaada mõesse áõarei \
        ãíindo ãóâerá éêãido ências õcóirá amentos aríamos asêtida aá'erem biríeis bé'ares ca'avas cébarem \
        disirás eivarás esáiram garisse go'ando go'irei gu'aras gu'irem guvaram gáradas ieseram iiremos \
        imentos io'eras irueres nuóados nõtasse oariria osâçará oâ'aste oõsavam rê'ires tioendo vuêidas \
        zóvámos ádâerás áe'iste âu'este ãõáreis émiaria êadimos êmâiras óõmidos õaíerei aisíamos au'áveis \
        beãareis bê'irmos dgeassem dá'erias dõõereis icêéreis iirestes lleieria lá'ardes mléissem níeesses \
        rouistes sãuisses teííreis utêireis uóririas vuõariam çeáermos çíuerdes égáastes éi'arias êvãirdes \
        aseíarmos azáeríeis dõvíramos eezaessem grêaremos gêêáramos gíliremos misásseis mliísseis \
        ni'eremos orõiríeis ámdíiriam ãoíssemos êóo'asses íclõeriam íeléramos íãássemos óçaávamos \
        amesésseis aõdêssemos lamaríamos mueeríamos ucéiríamos briãõaríeis nãidosamente adamente icamente \
        ivamente amentoantemente avelmente ívelmente abilidade osasicidade eisividade", 0xd3b8_1c16_b3aa_bd6c),
    (Stemming::Romanian, "\
        a e i ă ş ţ at ea ic ie ii it iv os ul ut şr ţr ţă ant ata ate ati ată aua aşi aţi ele ica ice ici \
        ică iei ile ism ist ita ite iti ită iva ive ivi ivă osi oşi uie uta ute uti ută şia şlr ţ'ă ţsm \
        abil anta ante anti antă atei ativ ator aâţi aşiv aţia aţie aţim cişi elor eşte eşti eţiv ibil \
        ical iciv iile ilor isme ista iste isti istă itiv itor ităi iune iuni işic işti iţin oasa oase \
        oasă oşit ului ulşș utţs uşiâ âşiă ător ş'ia şiam şiei şivi şșul ţară ţeam ţire ţiră ţosă ţsut \
        ţuse abila abile abili abilă asese ativa ative ativi ativă atori auaţv aşant aşioz aţiav aţiet \
        aţiăț aţișe ațiez b'eau ba'im burăm dţita eaţia eoşni eşteu eştin eţieb i'iai iaţiş ibila ibili \
        ibilă icala icale icali icală iciva icive icivi icivă ieoşn iesţe iilor itate itati itiva itive \
        itivi itivă itori ităţi itţai iâsem işiţo iştio iţivţ iţvaş iţâră lziam neşti oşizi oşițș rului \
        răaea seşiu sţeie taţie tşase tşice tţeai ueşte ulşâo urăţţ uteşş uşiâș vţiţi vţuși ze'âm âşirt \
        ăscşm ători ăştiţ ş'iam ş'iei ş'ivi şiaţi şiţva şmăsc şnute şoase şâoul şător şşute şș'ul ţ'ară \
        ţ'eam ţ'ire ţ'iră ţ'use ţindu ţiști ţoişi ţrltl a'eaţi aiţire atoare aţiune bteoâi caţise co'ezi \
        câ'ând eeleau emâuşi eoțăsc icator icităi idoase itoare ivităi iţiune la'ară ră'use to'ere tă'iau \
        utaâţi âe'âre ătoare ăâraşi şalâşi şârâse ţo'işi adâseră cărasem distiai douseşi eşsiâră eşăează \
        icatori icitate icitati icităţi itatind ivitate ivitati ivităţi ivălesc lă'eaţi maiăşti mșuăşte \
        nloşură ransese seebeţi ueţliţi zatieze ădăliam ţuteeam șu'ându șăatsei ți'eşte țlausem abilităi \
        aiturăţi aumseşti ațiserăm cateirăm do'useşi driaseşi iamșisem ie'iseşi imţaâsem ităiârăm lțiiseră \
        oăâlarăm srcțiiră zicâseşi ădăarăţi ățatiaţi şa'useră şaşsesem şoșomeai ţţşaindu șuaaseră \
        a'iserăţi abilitate abilitati abilităţi adaiâseră cuvseseră eeatească ibilitate iureourăm \
        nviuserăm ătăâserăm țeziserăm ia'userăţi ii'seserăm iualşirăţi lţțâaserăm usecsârăţi usoaserăţi \
        ămaiserăţi eamuiseseşi bââotâserăţi ărşâseserăţi ibilea", 0x96fb_5856_fe03_2984),
    (Stemming::Russian, "\
        а ай ая ев ее еи ен ею ил ась аыт аял его егы еит еиу ему ена ено ены ешь ией ием иий иим ила или \
        ило иом ить ияй иям иях оев оил оов оую оют уеи ует уой ыен ыие ыою ыта ыый юят юяя аена аиям амья \
        ащее аяет гуое еают ееия ейте енно етая ешьй ивши иили иило илии ияее иями ойив оост уете уого \
        уует ущся щиян ыено ылею ымюю ыьым ьяам юало юиях юыла яены яими ямиы ямыв агешь аиями ащейш войию \
        ивией игому иеиом иииуй илиие илйые иовах итему иуйте иямиа йимио йлоих муите мяуют нащых нлаье \
        нуего оеиил оемею оиего олыть отишь оыыми тиыли тоами тыныл уумым уявши ылаяв ымсуй ыянно юоиье \
        юывши яйить яоаых яхлиь аншиюю веюыло гимиив еввшим еееиия ившись иямиих йующые наииую ноюием \
        ныиыми сявила тын'ыл тюаяны ующиим ыещала яеиого ятиыли ахымиею вшииило вывшиии гееуиыл иилиите \
        иунаете ишьмали ноеиыла сиьсать сюеииам сяилиый тившиыв тяшивши уетиила щишейте ыилииям ытямиых \
        ышиывши ютаяйте яамиами ануамиья аымииями еиылаешь ешьамиит ещявшись ииуюиена итьамиий ихимиими \
        июостьее ияйамиеи лиямиыть лоившого меившись омвшиишь омуамиые оюмвлано хгющеиым щамиивши ыеейшеую \
        аиноиииой гшмсимиее ейшеимиая еюшывшись имиостост ооньывшых ьмныяиить ьуеьамиен амииывшись \
        емуившиует нишасгиено шунялиуйте ылииямиуют яйьнхямиою гвйсеиыиому хйсюгьеиены ххющталииях \
        шсиньемиыло ытилиившись угтьянштьяна щяиаьийеующым оюнная", 0x3fe7_9a7b_454f_4ea6),
    (Stemming::Spanish, "\
        a e o á é í ó ú ad la le lo me os se ica ico iva ivo las les los nos osa oso able ador ante anza \
        ible icas icos idad ismo ista ivas ivos osas osos sela selo ables ación adora aidas ancia antes \
        anzas arían bcóir cayes cdaía dá'id encia gó'yó ibles iesen ismos istas logía lolyo mente mé'ye \
        selas selos tsúar ución uneió yeder yiiís áised óidad adoras adores aerías amente ancias au'ida \
        aé'yan bá'ado eanáis encias gasará gióéis icíido idades iveirá iábara logías lácaré márlas néraba \
        oírerá rí'yen zerían zú'ase ézáada íivoya ío'eré aciones ai'idas amiento anáando aríamos aíraras \
        banerás bdóayas beremos ci'aría cááimos earíais eivados eé'iste go'idos gígiese imiento iu'adas \
        ivocyes layyais loéiría mo'arán oá'ases oá'irás re'iera ru'erán rí'arás uciones ue'aste yedabas \
        yesasen zséería órúirán úrúáiré úyaaron úúnaban aaderías amientos araeréis au'aréis béryamos \
        bí'yendo cayieran dagieras edáarían geéiendo gleiesen gnaerían imientos laríamos meniréis no'irían \
        nyayeron rúbieron sidaseis sónabais tlyóaran vnaaérme ósóieses úróarais acóbucion asóeremos \
        audoarías aísábamos beváramos cidieseis cyesirías díaeríais ií'iríais logiremos níeierais \
        ri'aríais ugá'ucion áándosela acób'ucion irádasteis ismoandola nbloásemos ollearemos ondáisteis \
        sarásucion téúiéramos zitaríamos énóúmucion acóbísucion idasiendome istassacion mézmiésemos \
        oadaeríamos ugáaréucion zórtiríamos énóúm'ucion íanadaucion ableaédacion aédivosacion dcrelí'acion \
        iríaisvacion ismosaducion ólmenteucion eríanugáucion uglvúyluacion érdcrelíacion ieronaránacion \
        rbóunáaú'ucion uglvúylu'acion énóúmaríaucion asteislosamente rbóunáaúaducion dcrelíiríanacion \
        uciónymbrvóucion abasrbóunáaúucion eríaisuglvúyluacion uglvúyluábamosacion arla erla irla iéndola \
        yendola írla adamente icamente ivamente ieranablemente adantemente eríaniblemente abilidad \
        iesesicidad yeronividad", 0x8a51_f254_285b_dac6),
    (Stemming::Swedish, "\
        a acas adee adna aels ac'as acrer anden andes asldd catat eiggt erhig etsnn euhor go'et igudt \
        na'ad oe'tt op'gd ti'kt aatöst aikens alhade bitare evolig ixkoar uxlern aa'orna adrades akmerna \
        aroande dittast ef'arna elsaren kasaste oigerns pmö'het sorarne ag'ernas ap'heter astöstor \
        eorheten fae'löst göhfullt savornas adxhetens ascmandes asktarnas atitandet censanden hernarens \
        staköstad xitheterna ötnrrelsen", 0xd3b8_0a23_d0e4_a2d0),
    (Stemming::Tamil, "\
        அ ஆ'ல் ஆனம் ஆான் இஅய் இாள் உ'வ் எஏயய ஏலனு ஒகண் ஒவர் ஓுக் கிற் கீழ் ஙந்த ச'ங் சஔரவ ட்க் ட்ட் ட்ப் \
        த்த் ந'ந் ந்த் ன்ற் ற்க் அஆபறத அஈ'து அஊஓஈோ அதக'உ அொடுோ ஆ'னம் ஆ'ான் ஆ'ேன் ஆஊாம் ஆஏாள் ஆஐதான ஆஙோம் \
        ஆயின் ஆலஆென இ'படி இ'ல்ல இகஉடன இஙஅஎஊ இநனஒழ ஈ'வன் ஈ'ில் ஈஆகண் ஈவெம் உ'கிற உஈவன் உபட்ட ஊ'ால் ஊஔார் \
        ஊளக'ே எநஏடஒ எமின் எலஇ'ன ஏ'ொடு ஏஆயபி ஏஈ'வி ஏஊாகி ஏஔகள் ஏணஇ'ோ ஏதும் ஏறனள் ஐ'ேம் ஒ'படு ஒ'வர் ஒ'ாய் \
        ஒதானு ஒமேல் ஓ'வள் ஓஉனன் ஓகீழ் ஓணபம் ஓபடு் ஔசவைீ ஔரஎனை கமநபீ கின்ற குஙடப ங'ோடு ஙழவிட ஙவிடு ச'ுடை \
        சடஆஐக சணனர் சனஒயை சனென் ஞ'பர் டபீர் ட்கள் ட்க்க த'பள் தஎனுக னகிறப னைபபா பட்டண பட்டு பற்றி மனாள் \
        மிடம் யஆபடி யனார் யீயர் ர'ுள் றறய'ா றல்லை ற்கள் லஇஆல் லனிர் லாமல் ல்ஏநை ளுள்ள ழுடன் வஏபன் வமார் \
        வமுன் அமஒஏஈம ஆ'ுடைய ஆயகின் ஈறடால் ஈில்லை உஞஉனள் உணஞுள் ஊந்ாம் எ'மின் எதாகிய எயஊீர் எுக்க் ஏ'தும் \
        ஏணஇவைோ ஏழஉனெ் ஏின்றி ஐஏபட்ட ஒ'ாகிய ஒஙசோம் ஒன்ற்வ ஒழுள்் ஓணஅஐனப கஉஈகிற கிறரவன கென்று ஙதனான் ஙபிோடு \
        சஓீால் டன்ற்ப ணின்று நிற்று ந்சபகப னைஈளவத படிதான பட்டது பனார்ை மஙர்ல் யிற்ய் லஐஐவன் லடறஙபய ல்ுக்ோ \
        வமஐஓபப வயலஉதய விட்டு விாோம் அயனுள்ள அவபஞமழட ஆஔஙஒவன் ஆவ்ுடைய இசஆகனர் ஈளவகிறத உாநின்ற எுக்க்ய \
        ஏனுற்க் ஏரறும்ன ஓஐ'ற்க் ஔவர்ார் குவூாம் ஙஔ'ன்ற் ஙஔின்ற் டின்றிை தஎயெவிட த்த்வைை னம்ரவிட பள்ஙோடு \
        புக்ீர் மமார்ென ரவள்ுள் றதானாகி ற்க்ரவக ழுங்கள் வ்மிடம் ஆஏபடுாள் ஆஔஙஒஆவன் ஆற்க்வர் ஈஞுக்க்த \
        எகபட்டது எஙஎஆபஊய் எஞஏஉதும் எவர்மின் எின்றிய் எிருந்து ஏஊபடிாகி ஏராநின்ற ஏலனான்னு ஏளநின்றி ஐயஇபட்க் \
        ஓஙஈஉஒனது ஔதும்கள் ஔெல்லாம் கட்ப்ெம் கவள்ட்க் கிறனுனம் கிற்னபம் குோடுபடு கொண்டிர் ஙந்த்ோடு சஒாமல்ென \
        சடஆஐெம்க ஞஎநஒநொடு தஉஉசஊவன் நறஈீன்ற் நுக்க்ந் ந்தணலபது னம்குுடை னாள்ெனபி னுஉஙடநபன பஞலபபதான படினைனள் \
        பன்லாமல் மத்த்ோடு யார்ீயர் றும்துனு லவஊஐசனவி ல்விடதான ளஉழநநாகி ளட்கள்து ளோம்ுள்ள வகின்றல் \
        ஈஓபனஈதுவி ஈஙுக்க்கு ஈணநகஔகவர் எஇஓுக்பள் எஔஉதஙஎயது எரழகககீழ் ஏஔனதலபபர் ஏகஎபன்ாகி ஏின்றுொடு \
        ஒபொடுந்த் ஓநணலகனார் ஓமஔஔசபம்க கறதபனணஅயன கீழ்எரழகக ங்ென்றுென டடணனைனென் ணலபதும்து தானபர்வர் \
        துகின்ற்த நநசகள்ொடு னம்ன்ற்னை னள்வன்ுக் னுகின்றது ன்ற்வைபர் பட்டதுகனை யஐபஇநுள்ள ரஇஎரமேல்ல \
        றஆனஔவன்வை றஇகீழ்ுடை விடுஏஆயபி வொஇசஆகனர் ஈஏரஒதபட்டண எறும்ுக்க் ஏயெம்ின்றி ஐஇட்ப்டும் ஐஉடஉஉதுவள் \
        ஐஙஎழஒரஏரவவ ஐாள்ுங்கள் ஒிருந்துது ஔஏடரபஞபர்ப கறதபனணஅயபன ஙதமின்னான் ணஈஏஉஓகபட்ட ணற்க்ிற்று னார்ஞபட்ட் \
        ன்ற்றும்னு மழறனர்ீயர் மேல்ஐஔஇஙனன யஆாள்ில்லை ல்தும்ுள்ள ழஓளககண்ாகி வஐடனாள்ோடு வன்ந்ில்லை விடவள்ுள்ள \
        ஆசளஙஞந்தந்த ஈமபஓலபகள்கு ஊணசமபன்ுடன் ஊறஇபள்ின்று ஏுக்க்ின்றி ஐறரனசகபற்றி ஒஉனஞபரின்றி ஒஙமஐஐுக்ால் \
        ஓஒஐசஇத்த்து ஓளஆெனும்ல்ல ஔதணசமின்ொடு கடஐஇான்றும் ஙஈஐஔதும்விட ஙஓகவஎழஒனவன் ஙபளடட்ட்னள் சகஅகஏஔறதவள் \
        சிருந்துுடை ஞஅஞிிருந்து ஞஇஙஓஞெுக்க் டகலமசஉதுந்த ணின்றிின்று தடஓநஏுக்பர் னரநனைபட்டது னர்கழறகனான் \
        னார்ஓஆகமார் னாள்நலபனார் பணஐரஇஊமதபள் றபஆகள்ில்லை லஅறஔழகள்ல்ல ழஅபசநகபட்டண ழஎணஎரநின்று வ்ங்ிருந்து \
        ஆஒதஆகஅஓதந்த் ஆஓறஊனம்ில்லை ஈகறமனள்ிற்று ஊஇபட்டுங்கள் ஊடனஏதட்ட்ாள் எஐடஏஏஎகின்றத ஏளநட்ப்ின்றி \
        ஓஐஞஆரயஆவட்க் ஓஐவஞவர்ுக்க் ஔதவநஏஆோம்கள் கஊசஈஐனான்கள் கஐமஆஇுடையாய் கனிர்ிருந்து கள்ிடம்ுக்க் \
        கிறஅஐரஆஒனபள் ஞஇஒட்ட்கின்ற ஞஙிற்றுிற்று டும்எகபட்டது ணறஐறவள்ட்கள் னான்உஈஉனமுன் னாள்றறஊதலஏதவ \
        பற்றிஎளஅனனன் றஅஔலகஆவைனார் ற்க்பஞலபபதான ற்க்ுங்கள்னை வகஐலசஔஒகமின் வபஆஒஈடஞஇனர்த ஈசகுங்கள்றும் \
        கநளஔஙழளஊதுனன் ட்ப்எரழகககீழ் தஐளஈஞஐஏஉபன்கு நஆகளஎஓநடைத்த் னணரஇாநின்ற்னை பஊனழழறனான்ுக் பணஐரஇஊமதனைபள் \
        மஐளஎின்றுுள்ள லளஏடஆஔஒஒகட்ப் ஊஞடஉஇிற்றுனென் ஊரநஆதுடன்ில்லை எஐஙடஙஐஏஒதும்வி ஐடபறஅடிற்றுொடு \
        ஒஈஈளசஒஆபவிட்டு ஔமஆயயனநஉவன்ாகி கின்ற்ட்ட்னென் நரஙயகுரியென்று படகணனஉனறுங்கள் ளஏஔறடந்ிருந்து \
        வர்உஉலஊனாநின்ற கும்கின்ற்ின்று ஙஇபரஆழளஒவர்மார் டணளஒஙணளடட்ட்படு ணகஒஙஏமஅஞட்கள்னை பஎஐடஊரனார்ென்று \
        பட்டஇடஞஈறபஔதனம் றஐஉரஞசஙஞனுபட்டு ழஎணஎரநனான்ின்று விட்டுதஞபாநின்ற எஞகஊஎஈஊகபட்டுல்ல ஐறஔஔலதஊஅாள்ின்று \
        ஙரஇஓயதஊமாநின்றோம் ரஏஓமநணனாள்ிருந்து வகஐலசஔஒகபட்டதுமின் சுங்கள் துங்கள் புங்கள் வில்ல விீல்ல \
        விடுெல்ல குரியகும் விடசை ட்க்தை கண்றை னென்கை மின்ீய் விடைன்ற் விடுாது ந்தீது னம்ூது வர்ெது \
        னான்இவன் ட்க்எவன் ற்கள்ஏவன் உஓவன் ன்ற்ிது பிேது குைது ஒினு ஆீனு பேனு பட்டைனு", 0x6328_0c4c_2abc_63eb),
    (Stemming::Turkish, "\
        a eim eli idi ime iti ıdı asen asün cuza danı dike dini e'im ed'm edik eıne i'di i'ti idin itım \
        kuun ları leri li'e luse nıuu ried rm'c rüsa udün ular usak ut'd utuk ze'a üdın üsek ütum ı'dı \
        ı'üm ıdan ıdum ın'ğ ınüz ısta ısız ıtin ış'b şc'n a'sen acsen am'tu bc'de bc'le bl'ce buala bzile \
        caide cd'im ct'tü cısın cş'dü deınğ dr'nu duenu dğ'ti dıdün dızın e'dik eaniz ebmiz edtun eetim \
        eukrb eı'ne i'din iddir inıdi iudüm iü'ca iş'üz kdana ke'nü kr'di kt'um ku'te ku'un küler ledım \
        lenüz lu'se mc'ün mince ms'ın mümüz mümüş nitam nr'na nutun ra'iz radim rie'd rt'la rü'sa siniz \
        sunuz sünüz sı'uz sıite sınız ti'üm tiden ts'ni tümtü tütüm tıkca u'sak u'tuk uedün untic unütu \
        urıdu uu'nı zende ü'sek üanda ündan ünümd üu'tı ğe'dı ğusan ır'du ıs'ta ıs'ız ıüdür ıürce şd'da \
        şl'ım şz'in şğuum şıdık ae'tür aiütan akmnız akrmuz amueıı aümdin aş'lar bb'dun bc'sam bk'dan \
        bm'nuz bnızım bua'la bzi'le casına ccğ'un cd'din cd'nız ceeubd cesine ct'duk cz'tan cü'tım cı'sın \
        daeıne dc'ten dirütü dr'sek dukmüz düldım düudün ea'niz ebl'ın ee'sün ee'tim enıtir et'miz eğdnuz \
        id'dir ide'ca in'dük in'tün iu'düm iüutüm iıedır kb'dum kn'muz kt'sun kü'ler kü'tur le'dım le'nüz \
        lk'sem lk'tuk lumdım mersem mi'sak mmi'di mti'ım mu'tin mz'nda mü'müz mü'müş müntür mı'tük mımmız \
        nd'tir nessan nl'mış nl'tık nu'tun nudünü nücada ra'dim rd'miş rde'de rduruz riğ'sa sl'dik ss'tır \
        sundın sğ'sin tatdun tüdıün türtdü umütum urı'du uşrdim zışdın şcenuz şı'dık adümdun asandım \
        atımmış aüazdin bbuzdun bcuzsam bişmtin bskaniz cddenız cşaztır daşctın dumşdda edıkdüm intudum \
        inırmiş iıe'dır işmttad kbizdum lertmüz mcdünün nuzüztü semcdim sünmmız tenştik tüeüici tıkğedı \
        ubkndan ümdütür ındenın ııtesin şciztik cersnden cesinemi dadıktım dutindüm dıksüntı dınumsun \
        eatıkniz inğcaten kladleri küduntur ledırdım müşeesün mıdüntük mşuüuduk nruğmdin tirduriz tkmuzmuş \
        tuknüsün tükızdük tıruztın ümnuzdur üzlarmış ıbmuştum ıudğıtur şaenünuz bmlarınuz dikdürdum \
        dircızmdn drşud'miz dumlerduk eşrdüatün larıuzmuş suese'dim süğnı'tık tintiktin tinğmenin \
        tünıilidü tşurkldur ünzllndim üuüşeddun larıtindun aierğrrinuz dimbuğssıcı eşazüzua'üz kutüğinkdüm \
        muşnğeerdum trriukessun dıeünztürtük luübsşrrmişdü tişimkreturtu kutüğinkdirdüm tanküsbüzidtan", 0xd88b_5209_d455_efb2),
];
